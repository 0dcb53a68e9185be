/* Writable layers that are btrfs subvolumes: made, measured, copied and gone in no time, each with a limit of its own. */
#ifndef WARREN_LAUNCH_LAYER_H
#define WARREN_LAUNCH_LAYER_H

#include "errand.h"

void volume_open(const struct errand *e);
void layer_create(const struct errand *e);
void layer_limit(const struct errand *e);
void layer_usage(const struct errand *e);
void layer_snapshot(const struct errand *e);
void layer_remove(const struct errand *e);

#endif
