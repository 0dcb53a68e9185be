// sudo without setuid: the shim asks PID 1, PID 1 starts the command as root of the sandbox.
#ifndef SUDO_H
#define SUDO_H

#include "conn.h"

extern const struct conn_ops sudo_ops;
int sudo_shim(int argc, char **argv); // the program a person calls

#endif
