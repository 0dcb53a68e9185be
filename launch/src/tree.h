#ifndef WARREN_LAUNCH_TREE_H
#define WARREN_LAUNCH_TREE_H

#include "errand.h"

/* Makes directories in one that is there, with owners that only this process may give. One that exists gets mode and owner. */
void tree_folders(const struct errand *e);
/* Answers with the bytes on disk of everything below a path. Crosses no mount. What vanishes meanwhile does not count. */
void tree_usage(const struct errand *e);

#endif
