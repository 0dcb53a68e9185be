#ifndef WARREN_CONFINE_CONFINE_H
#define WARREN_CONFINE_CONFINE_H

#include "plan.h"

/* The kernel's version of Landlock; below 1 when it has none. */
long landlock_abi(void);

/* Landlock is there and knows everything we ask of it. */
struct failure landlock_check(void);

/* To the unprivileged uid of the plan, with no capability left that could bring anything back. */
struct failure drop_privileges(const struct plan *p);

/* Confines the calling process for good and becomes init. Returns only when a step failed. */
struct failure confine_and_exec(const struct plan *p, pid_t keeper);

#endif
