#ifndef WARREN_LAUNCH_COPY_H
#define WARREN_LAUNCH_COPY_H

#include "errand.h"

/* Everything below a directory once more, under another name: owners, modes, times, attributes, links, devices and holes as they are.
 * Shares the bytes where the file system can. Nobody may write to it meanwhile. Half a copy stays if it fails. */
void copy_tree(const struct errand *e);

#endif
