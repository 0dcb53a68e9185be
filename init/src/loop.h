// The event loop: descriptors and timers that call back. One thread, level triggered.
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#define owner_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

struct source {
    int fd; // -1 while not watched
    uint32_t events;
    void (*ready)(struct source *, uint32_t events);
};

struct timer {
    uint64_t atMs;
    struct timer *next, *prev;
    void (*fire)(struct timer *);
};

bool loop_open(void);
void loop_run(void); // returns after loop_quit
void loop_quit(void);

bool source_add(struct source *, int fd, uint32_t events, void (*ready)(struct source *, uint32_t));
void source_want(struct source *, uint32_t events);
// Stops watching and closes the descriptor.
void source_close(struct source *);
// Stops watching and gives the descriptor back to the caller.
int source_take(struct source *);

void timer_set(struct timer *, uint64_t delayMs, void (*fire)(struct timer *));
void timer_clear(struct timer *);

// Frees after the current batch of events, because a later event of the batch may still point there.
void loop_free(void *);

uint64_t now_us(void);
uint64_t now_ms(void);

#endif
