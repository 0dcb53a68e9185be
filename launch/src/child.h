/* Jobs that are a forked child: from its fork to the answer. */
#ifndef WARREN_LAUNCH_CHILD_H
#define WARREN_LAUNCH_CHILD_H

#include "errand.h"
#include "job.h"

/* Both fork, and answer with a fault when they cannot. */
void child_start(struct job *j, const struct start *s);
void child_errand(struct job *j, const struct errand *e);

/* Called whenever something about it changed: answers when it is done. */
void child_advance(struct job *j);
/* It ends with that fault, after everything it started is dead. */
void child_doom(struct job *j, int error, const char *message);
void child_read_report(struct job *j);
void child_read_output(struct job *j);

#endif
