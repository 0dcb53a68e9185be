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
/* The same for one of many: its number stands wherever the file says "@@". */
struct steps *steps_read_numbered(const char *file, int number);

/* ---- child.c ---- */
uint64_t now_us(void);
char *slurp(const char *file, size_t *size);
/* With the number in place of every "@@". */
char *numbered(const char *text, int number);
enum { WORDS_MOST = 256 };
/* Words that end with a NUL each, as arguments of a program. */
void words_read(const char *file, char **words);
/* Says what went wrong, removes what was made, and ends the process. */
_Noreturn void fail(const char *what);
/* From here on `fail` speaks to the parent, which cleans up. */
void be_child(void);
/* Runs a program to its end, on pipes: crun changes the owner of its standard streams, and must not find the host's files there. */
void run(char *const *arguments, const struct steps *before);
/* The same, and does not wait. */
pid_t begin(char *const *arguments, const struct steps *before);
void wait_for(pid_t pid);
void open_streams(void);
void give_streams(void);

/* ---- main.c ---- */
/* A root of its own for whatever is started next, at /mnt/bundle/root. Taking it down does not touch what has entered it. */
void layers_up(void);
void layers_down(void);

/* ---- crowd.c: what other programs cost, one after the other and many at once ---- */
void crowd_read(void);
/* From nothing over `true` to nothing. */
uint64_t crun_cycle(void), runc_cycle(void);
/* One more that sleeps. */
uint64_t crun_start(void), runc_start(void), bwrap_start(void);
/* `true` in the last one that was started. */
uint64_t crun_exec(void), runc_exec(void), bwrap_exec(void);
/* All of them are gone. */
uint64_t crun_stop(void), runc_stop(void), bwrap_stop(void);

/* ---- floor.c ---- */
/* From nothing to a PID 1 that has run `true` and said so. */
uint64_t floor_start(void);
/* What is in the place of init there. */
int floor_pid1(void);
void floor_read(void);

#endif
