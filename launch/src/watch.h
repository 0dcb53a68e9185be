/* Processes whose end the runner wants to hear of. */
#ifndef WARREN_LAUNCH_WATCH_H
#define WARREN_LAUNCH_WATCH_H

#include "request.h"

#include <sys/types.h>

void on_watch(struct request *r);
/* One of our children ended: its status, for the event. */
void watch_reaped(pid_t pid, int status);
/* The pidfd of that watch says that it ended. */
void watch_ended(uint32_t index, uint32_t generation);

#endif
