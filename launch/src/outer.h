/* Without root: one user namespace that holds the ids of the user (0) and those given to them in /etc/subuid and /etc/subgid
 * (1, 2, …), with a mount namespace of its own. Every child enters both first: from then on it has the rights a real root has,
 * over these ids alone. The launcher stays outside, where it may kill what any launcher of the same user started. */
#ifndef WARREN_LAUNCH_OUTER_H
#define WARREN_LAUNCH_OUTER_H

#include <stdbool.h>

/* ids: "UID:GID:COUNT", the first of each and how many; NULL: only the user's own id. Ends the process when it cannot be. */
void outer_make(const char *ids);
/* Whether there is one: not for root. */
bool outer_is(void);
/* False: errno says why. Nothing to do, and true, for root. */
bool outer_enter(void);

#endif
