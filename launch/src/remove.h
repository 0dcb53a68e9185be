#ifndef WARREN_LAUNCH_REMOVE_H
#define WARREN_LAUNCH_REMOVE_H

/* Deletes the tree `path`, strictly below the directory `root`, from a forked child. Follows no symbolic link, crosses no
 * mount. Bounded memory and descriptors at any depth. Something that is not there is fine. Never returns. */
_Noreturn void remove_child(const char *root, const char *path, int report_fd);

#endif
