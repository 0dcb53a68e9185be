// The first frame of a connection decides what it is for.
#ifndef OPS_H
#define OPS_H

#include "conn.h"

extern const struct conn_ops ops_host;

void stop_begin(uint64_t graceMs); // also on SIGTERM
bool stop_begun(void);
void stop_check(void);             // after reaping: is anybody left?

#endif
