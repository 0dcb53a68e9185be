#ifndef WARREN_CONFINE_KEEPER_H
#define WARREN_CONFINE_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

/* Before the first child: orphans of the sandbox become ours, and its signals are read, not taken. */
bool keeper_start(void);

/* Lives until init ends, TERM comes, or the parent goes away without its word. Then nobody is left. */
void keeper_run(pid_t init, bool hasOwnUid);

/* Kills and reaps everything below this process. */
void keeper_end(bool hasOwnUid);

#endif
