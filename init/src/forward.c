#include "forward.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "caps.h"
#include "limits.h"
#include "loop.h"
#include "ops.h"
#include "reap.h"

enum { AGAIN_MS = 100, BACKLOG = 256 };

struct door {
    struct source source;
    const char *path;
};

static struct {
    uint16_t port;
    const char *path;
} forwards[FORWARDS_MAX];
static int forwardCount;
static struct door doors[2 * FORWARDS_MAX]; // 127.0.0.1, and ::1 where there is one
static int doorCount;
static struct child forwarder;
static struct timer again;

bool forward_add(const char *text) {
    char *end;
    unsigned long port = strtoul(text, &end, 10);
    size_t room = sizeof((struct sockaddr_un *)0)->sun_path;
    bool good = *text >= '0' && *text <= '9' && port >= 1 && port <= 65535 && end[0] == ':' && end[1] == '/';
    if (!good || strlen(end + 1) >= room || forwardCount == FORWARDS_MAX) return false;
    forwards[forwardCount].port = (uint16_t)port;
    forwards[forwardCount++].path = end + 1;
    return true;
}

static void listen_again(struct timer *t) {
    (void)t;
    for (int i = 0; i < doorCount; i++) source_want(&doors[i].source, EPOLLIN);
}

static void look_away(void) {
    for (int i = 0; i < doorCount; i++) source_want(&doors[i].source, 0);
}

// Who connects meanwhile waits in the kernel's queue. A little later, so that one that dies at once does not keep us busy.
static void ended(struct child *c, int status, const struct rusage *usage) {
    (void)usage;
    c->pid = 0;
    if (status == 0) listen_again(NULL);
    else timer_set(&again, AGAIN_MS, listen_again);
}

__attribute__((noreturn)) static void child(void) {
    struct forward_port ports[2 * FORWARDS_MAX];
    unsigned next = 3; // the doors were opened one after the other, so their numbers rise
    for (int i = 0; i < doorCount; i++) {
        ports[i] = (struct forward_port){doors[i].source.fd, doors[i].path};
        unsigned fd = (unsigned)ports[i].fd;
        if (fd > next) syscall(SYS_close_range, next, fd - 1, 0u);
        next = fd + 1;
    }
    syscall(SYS_close_range, next, ~0u, 0u);
    setsid();
    struct user own = {.uid = geteuid(), .gid = getegid()}, apart = {.uid = FORWARD_UID, .gid = FORWARD_UID};
    if (caps_become(caps_can_become() ? &apart : &own) != 0) _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    prctl(PR_SET_NAME, "forward", 0, 0, 0);
    forward_serve(ports, doorCount);
}

static void somebody_comes(struct source *s, uint32_t events) {
    (void)s, (void)events;
    look_away();
    if (forwarder.pid || stop_begun()) return;
    pid_t pid = reap_fork();
    if (pid == 0) child();
    if (pid < 0) {
        timer_set(&again, AGAIN_MS, listen_again);
        return;
    }
    forwarder = (struct child){.pid = pid, .ended = ended};
    reap_add(&forwarder);
}

static bool open_door(int family, const struct sockaddr *address, socklen_t size, const char *path) {
    int one = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return false;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, address, size) != 0 || listen(fd, BACKLOG) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return false;
    }
    struct door *d = &doors[doorCount++];
    d->path = path;
    return source_add(&d->source, fd, EPOLLIN, somebody_comes);
}

bool forward_start(void) {
    for (int i = 0; i < forwardCount; i++) {
        uint16_t port = htons(forwards[i].port);
        struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        caps_raise(); // a port below 1024
        bool good = open_door(AF_INET, (struct sockaddr *)&v4, sizeof v4, forwards[i].path);
        if (good) open_door(AF_INET6, (struct sockaddr *)&v6, sizeof v6, forwards[i].path);
        caps_lower();
        if (!good) return false;
    }
    return true;
}
