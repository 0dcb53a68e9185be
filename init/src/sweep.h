// Ending everything an operation started, also what left its process group.
#ifndef SWEEP_H
#define SWEEP_H

#include <stdbool.h>
#include <sys/types.h>

#include "proc.h"
#include "user.h"

enum { MARK_LEN = 32 };

struct sweep {
    const char *mark; // the WARREN_OP of the operation
    pid_t leader;     // of its session
    bool spareLeader; // a shell outlives its runs
    const struct pid_list *spare; // these, and what they start, are left alone; may be NULL
    struct user user;
    void (*done)(struct sweep *); // everything that could be found is dead
    struct sweep *next;
    bool pending;
    int tries;
};

void mark_new(char mark[MARK_LEN + 1]);
// KILL to the session and to all descendants, now; then to everything with the mark, which takes a helper process of
// that user, because environments can be read by their owner only. Calls done() later, always.
void sweep_start(struct sweep *);
void sweep_forget(struct sweep *); // done() will not be called
// Signals a group as init.
void signal_group(pid_t leader, int number);

#endif
