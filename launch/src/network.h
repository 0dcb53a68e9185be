/* The cable of a sandbox that has an address of its own: a pair of devices, one end on the host, one inside as eth0. */
#ifndef WARREN_LAUNCH_NETWORK_H
#define WARREN_LAUNCH_NETWORK_H

#include "errand.h"

/* Reads the fields of both errands. */
void network_parse(struct request *r, struct errand *e, bool connecting);
void network_connect(const struct errand *e);
/* What is gone already is fine. */
void network_disconnect(const struct errand *e);

#endif
