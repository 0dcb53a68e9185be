/* The mounts of a start, all made by its forked child. Every failure is reported and ends it. */
#ifndef WARREN_LAUNCH_MOUNT_H
#define WARREN_LAUNCH_MOUNT_H

#include "start.h"

#include <sys/stat.h>

/* An absolute path opened without following any symbolic link on the way. */
int open_path(const char *path, int flags);
/* A detached private copy of one mount (nothing mounted below it), id-mapped where the file system can. */
int clone_mount(const char *step, const char *path, int userns, uint64_t attributes, bool *idmap, struct stat *st);
void attach(const char *step, int mount_fd, int dir, const char *name, const char *subject);
/* Opens `to` below root, creating what is missing. No component may be a symbolic link: the content is not ours. */
int bind_target(int root, const char *to, bool directory);
/* Stage names: layer i of overlay k is "k-i", the directory of all uppers and works is "rw". Relative names keep the options
 * short, and the host's paths out of the sandbox's mountinfo. */
void mount_overlay(const struct start *s, int k, const char *target, const struct stat *upper);
/* Without the right owners an overlay comes up read-only and says nothing. */
void check_writable(const struct overlay *o, const char *target);
const char *last_name(const char *path);

#endif
