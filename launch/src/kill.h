#ifndef WARREN_LAUNCH_KILL_H
#define WARREN_LAUNCH_KILL_H

#include "job.h"
#include "request.h"

void on_kill(struct request *r);
/* The process is gone, or time has passed: empties and removes the cgroups, answers when done. */
void kill_advance(struct job *j);

#endif
