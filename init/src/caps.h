// Capabilities: what init may do, when, and how a child loses it. Raw system calls only, because libc's setuid
// wrappers synchronise threads that do not exist here.
#ifndef CAPS_H
#define CAPS_H

#include <stdbool.h>

#include "user.h"

// Drops ambient, inheritable and effective; not dumpable, no new privileges, no core files.
void caps_start(void);
bool caps_can_become(void); // may change uid and gid at all

// Around the one call that needs them. Nestable is not needed, so it is not.
void caps_raise(void);
void caps_lower(void);

// In a forked child: becomes the user for good. 0, or an errno.
int caps_become(const struct user *);

#endif
