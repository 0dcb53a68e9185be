#include "loop.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 32, GARBAGE_STEP = 32 };

static int epoll = -1;
static bool quitting;
static struct timer *timers; // sorted by time
static void **garbage;
static size_t garbageCount, garbageRoom;

uint64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

uint64_t now_ms(void) { return now_us() / 1000u; }

bool loop_open(void) {
    epoll = epoll_create1(EPOLL_CLOEXEC);
    return epoll >= 0;
}

void loop_quit(void) { quitting = true; }

bool source_add(struct source *s, int fd, uint32_t events, void (*ready)(struct source *, uint32_t)) {
    struct epoll_event e = {.events = events, .data.ptr = s};
    s->fd = fd;
    s->events = events;
    s->ready = ready;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0) return true;
    s->fd = -1;
    return false;
}

void source_want(struct source *s, uint32_t events) {
    if (s->fd < 0 || s->events == events) return;
    struct epoll_event e = {.events = events, .data.ptr = s};
    s->events = events;
    epoll_ctl(epoll, EPOLL_CTL_MOD, s->fd, &e);
}

int source_take(struct source *s) {
    int fd = s->fd;
    // Removed by hand: a forked child may still hold the open file, and epoll would go on reporting it.
    if (fd >= 0) epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
    s->fd = -1;
    return fd;
}

void source_close(struct source *s) {
    int fd = source_take(s);
    if (fd >= 0) close(fd);
}

void timer_clear(struct timer *t) {
    if (!t->fire) return;
    if (t->next) t->next->prev = t->prev;
    if (t->prev) t->prev->next = t->next;
    else timers = t->next;
    t->next = t->prev = NULL;
    t->fire = NULL;
}

void timer_set(struct timer *t, uint64_t delayMs, void (*fire)(struct timer *)) {
    timer_clear(t);
    t->atMs = now_ms() + delayMs;
    t->fire = fire;
    struct timer *before = NULL, *after = timers;
    while (after && after->atMs <= t->atMs) before = after, after = after->next;
    t->prev = before;
    t->next = after;
    if (after) after->prev = t;
    if (before) before->next = t;
    else timers = t;
}

void loop_free(void *p) {
    if (!p) return;
    if (garbageCount == garbageRoom) {
        void **more = realloc(garbage, (garbageRoom + GARBAGE_STEP) * sizeof *more);
        if (!more) return; // a leak is better than a dangling pointer
        garbage = more;
        garbageRoom += GARBAGE_STEP;
    }
    garbage[garbageCount++] = p;
}

static void collect(void) {
    for (size_t i = 0; i < garbageCount; i++) free(garbage[i]);
    garbageCount = 0;
    if (garbageRoom > GARBAGE_STEP) {
        free(garbage);
        garbage = NULL;
        garbageRoom = 0;
    }
}

static void fire_due(void) {
    uint64_t now = now_ms();
    while (timers && timers->atMs <= now) {
        struct timer *t = timers;
        void (*fire)(struct timer *) = t->fire;
        timer_clear(t);
        fire(t);
    }
}

static int wait_ms(void) {
    if (!timers) return -1;
    uint64_t now = now_ms();
    if (timers->atMs <= now) return 0;
    uint64_t rest = timers->atMs - now;
    return rest > 3600000 ? 3600000 : (int)rest;
}

void loop_run(void) {
    struct epoll_event batch[BATCH];
    while (!quitting) {
        int n = epoll_wait(epoll, batch, BATCH, wait_ms());
        for (int i = 0; i < n; i++) {
            struct source *s = batch[i].data.ptr;
            if (s->fd >= 0) s->ready(s, batch[i].events);
        }
        fire_due();
        collect();
    }
}
