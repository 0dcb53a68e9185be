#ifndef WARREN_LAUNCH_REMOVE_H
#define WARREN_LAUNCH_REMOVE_H

#include "errand.h"

/* Deletes a tree. Follows no symbolic link, crosses no mount. Bounded memory and descriptors at any depth. Something that
 * is not there is fine. */
void remove_tree(const struct errand *e);
/* The same for a name in a directory; path is for messages. */
void remove_name(int parent, const char *name, const char *path);

#endif
