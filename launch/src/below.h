/* Paths below a --root, opened without following a symbolic link. */
#ifndef WARREN_LAUNCH_BELOW_H
#define WARREN_LAUNCH_BELOW_H

#include <stdint.h>

/* more: further rules of openat2. −1 and errno. */
int below_open(const char *path, int flags, uint64_t more);
/* The directory that holds the path's last name: what is done to a name in a directory we hold cannot be led astray. */
int below_parent(const char *path, int flags, uint64_t more, const char **last);

#endif
