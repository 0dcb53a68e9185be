// What /proc says about processes, without anything that another process could make block.
#ifndef PROC_H
#define PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc {
    pid_t pid, parent, session;
    uint64_t started; // clock ticks since boot
    uint64_t cpuTicks, rssPages;
    char state;
    bool hit; // for the caller
};

struct proc_list {
    struct proc *at;
    size_t count;
};

bool proc_read(pid_t, struct proc *);
struct proc_list proc_all(void); // free with proc_list_free; empty when there is no memory
void proc_list_free(struct proc_list *);

// Only the numbers: one directory read, for "who was there before?".
struct pid_list {
    pid_t *at; // sorted
    size_t count;
    uint64_t ticks; // when it was taken
};
struct pid_list pids_now(void);
void pid_list_free(struct pid_list *);
bool pid_list_has(const struct pid_list *, pid_t, uint64_t started);

#endif
