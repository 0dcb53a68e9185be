// Ports of loopback inside that lead to Unix sockets: the way out of a sandbox that has no network.
#ifndef FORWARD_H
#define FORWARD_H

#include <stdbool.h>

// "PORT:/path". False: it is not one, or there are too many.
bool forward_add(const char *text);
// Listens on all of them. PID 1 only listens: the first connection starts the forwarder.
bool forward_start(void);

// In the forwarder: serves these listening sockets, each of which leads to a path, until nothing was to do for a while.
struct forward_port {
    int fd;
    const char *path;
};
__attribute__((noreturn)) void forward_serve(const struct forward_port *, int count);

#endif
