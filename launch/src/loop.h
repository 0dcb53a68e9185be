/* The one loop: descriptors, signals and deadlines. Nothing is waited for elsewhere. */
#ifndef WARREN_LAUNCH_LOOP_H
#define WARREN_LAUNCH_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#define START_FD 16 /* the launcher keeps its own descriptors above those a runtime gets */

enum source { FROM_STDIN, FROM_STDOUT, FROM_SIGNALS, FROM_REPORT, FROM_OUTPUT, FROM_VICTIM, FROM_WATCH };

/* Runs until the runner is gone and nothing is under way. */
void loop(void);
/* No more requests: what is half-made ends, then the loop does. */
void loop_close(void);

/* generation tells a reused index from the one that was meant. */
void watch_fd(int fd, uint32_t events, enum source source, uint32_t index, uint32_t generation);
/* Unregisters and closes. */
void unwatch_fd(int *fd);
void close_fd(int *fd);

uint64_t now_ms(void);
_Noreturn void die(const char *what);

#endif
