// Children and orphans: who ended, and who wants to know.
#ifndef REAP_H
#define REAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct child {
    pid_t pid;
    struct child *next;
    // Called while the child is still a zombie, so its pid and group cannot belong to somebody else yet.
    void (*ended)(struct child *, int status, const struct rusage *);
};

// fork() for everybody here: the child starts with default signals, and is the first choice of the OOM killer.
pid_t reap_fork(void);
void reap_add(struct child *);
void reap_forget(struct child *);

void reap_start(void); // before caps_start: opens what a process that is not dumpable may not
void reap_all(void);   // on SIGCHLD
uint64_t reap_orphans(void);
bool reap_none_left(void);

#endif
