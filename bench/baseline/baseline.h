/* What the metrics of sandboxes are measured against, started from a small process that lives as long as the metric: so no
 * baseline pays for a fork of Node. What exactly is made (mounts, masks, limits) is written by baseline.ts from the driver's own
 * tables. */
#ifndef WARREN_BASELINE_H
#define WARREN_BASELINE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- steps.c: small acts, read from a file before the clock runs ---- */
struct steps;
struct steps *steps_read(const char *file);
void steps_do(const struct steps *steps);

/* ---- child.c ---- */
uint64_t now_us(void);
char *slurp(const char *file, size_t *size);
/* Says what went wrong, removes what was made, and ends the process. */
_Noreturn void fail(const char *what);
/* From here on `fail` speaks to the parent, which cleans up. */
void be_child(void);
/* Runs a program to its end, on pipes: crun changes the owner of its standard streams, and must not find the host's files there. */
void run(char *const *arguments, const struct steps *before);
void wait_for(pid_t pid);
void open_streams(void);
void give_streams(void);

/* ---- floor.c ---- */
/* From nothing to a PID 1 that has run `true` and said so. */
uint64_t floor_start(void);
/* What is in the place of init there. */
int floor_pid1(void);
void floor_read(void);

#endif
