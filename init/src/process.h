// Processes that init started on request: their pipes or terminal, their limits, their end.
#ifndef PROCESS_H
#define PROCESS_H

#include "conn.h"
#include "reap.h"
#include "ring.h"
#include "sweep.h"

struct attacher;

struct stream { // one pipe (or terminal) we read
    struct source source;
    struct process *process;
    uint8_t tag;
    bool grown;
    size_t last; // after the end: bytes that were still in the pipe then
};

struct process {
    struct process *next, *prev;
    struct child child;
    struct stream out[2];
    struct source in; // write end of stdin; with a terminal, out[0] is both
    struct source status;
    struct timer timeout;
    struct sweep sweep;
    struct ring ring; // detached only
    struct attacher *attachers;
    unsigned attacherCount;
    char mark[MARK_LEN + 1];
    char *argv; // JSON, cut
    char *exit; // the exit event, once everything is over
    bool started, failed, ended, killed, detached, pty, truncated;
    bool held; // nobody has attached yet, and nothing may be lost until then
    const char *reason; // why we killed it; NULL: we did not
    int exitStatus;
    uint64_t startedUs, startedUnixMs, durationUs, cpuUs, maxRssBytes;
    uint64_t outputBytes, outputBytesMax;
    int64_t timeoutMs, graceMs;
};

void op_spawn(struct conn *, struct request *); // spawn.c
void process_watch_output(struct stream *, int fd);
void process_watch_input(struct process *, int fd);
void process_adopt(struct process *, pid_t, int status); // launched: from here on it lives by itself
void process_free(struct process *);

struct process *process_find(pid_t);
unsigned process_running(void);
void process_kill(struct process *, const char *reason); // by the book: TERM, grace, KILL, sweep
void process_flow(struct process *, bool go);            // read its output, or hold it back
void process_list(struct text *);                        // JSON objects, comma separated
void process_cancel_all(void);                           // the sandbox stops
void process_start(void);

// Shared with shells.
void usage_of(const struct rusage *, uint64_t *cpuUs, uint64_t *maxRssBytes);
char *argv_json(char **argv);

#endif
