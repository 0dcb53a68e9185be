// What the sandbox uses, as seen from inside.
#ifndef USAGE_H
#define USAGE_H

#include "conn.h"

void usage_start(void);
void op_usage(struct conn *, struct request *);

#endif
