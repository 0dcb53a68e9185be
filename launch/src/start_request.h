#ifndef WARREN_LAUNCH_START_REQUEST_H
#define WARREN_LAUNCH_START_REQUEST_H

#include "request.h"

void on_start(struct request *r);

#endif
