// The forwarder: a process of its own, under a uid of its own. Every connection to a port goes to a Unix socket and back.
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "forward.h"
#include "limits.h"

enum { BATCH = 64, PIECE = 64 << 10, IDLE_MS = 10000, PAUSE_MS = 20 };

struct pair;

// One of the two descriptors of a pair. What was read here and could not be sent to the other yet is held.
struct side {
    int fd;
    uint32_t events; // what epoll reports now; 0: it is not in the set
    bool ended;      // nothing more will be read here
    bool passed;     // and the other side knows
    bool deaf;       // the other side takes nothing more: what is read is dropped
    char *held;
    size_t have, sent;
    struct pair *pair;
};

struct pair {
    struct side inside, outside; // TCP; the Unix socket
    struct pair *nextFree;
    bool over;
};

static int set = -1, count;
static const struct forward_port *ports;
static int portCount;
static bool listening;
static struct pair *garbage; // freed after the batch: a later event may still point there
static char piece[PIECE];

static void want(struct side *s, uint32_t events) {
    if (s->events == events) return;
    struct epoll_event e = {.events = events, .data.ptr = s};
    // A side that wants nothing leaves the set, or its hang-up would wake us without end.
    epoll_ctl(set, !events ? EPOLL_CTL_DEL : s->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, s->fd, &e);
    s->events = events;
}

static void listen_on(bool on) {
    if (listening == on) return;
    listening = on;
    for (int i = 0; i < portCount; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = (void *)(uintptr_t)&ports[i]};
        epoll_ctl(set, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, ports[i].fd, &e);
    }
}

static void reset(int fd) {
    struct linger now = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

static void end(struct pair *p, bool broken) {
    if (p->over) return;
    p->over = true;
    if (broken) reset(p->inside.fd);
    close(p->inside.fd);
    close(p->outside.fd);
    free(p->inside.held);
    free(p->outside.held);
    p->nextFree = garbage;
    garbage = p;
    count--;
    listen_on(true);
}

// Sends on what is held or, if that is nothing, what can be read now. False: the pair is broken.
static bool move(struct side *from, struct side *to) {
    const char *bytes = from->held ? from->held + from->sent : piece;
    size_t left = from->have - from->sent;
    if (!from->held && !from->ended) {
        ssize_t n = recv(from->fd, piece, sizeof piece, 0);
        bool failed = n < 0 && errno != EAGAIN && errno != EINTR;
        // A proxy that left without reading everything: what it said before must arrive all the same.
        if (failed && from != &from->pair->outside) return false;
        from->ended = n == 0 || failed;
        left = n > 0 && !from->deaf ? (size_t)n : 0;
    }
    while (left > 0) {
        ssize_t n = send(to->fd, bytes, left, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        bytes += n;
        left -= (size_t)n;
    }
    if (left > 0 && errno != EAGAIN) {
        // A proxy that has heard enough may still be answering: that answer must arrive. A client that has gone is gone.
        if (to != &to->pair->outside) return false;
        from->deaf = true;
        left = 0;
    }
    if (left > 0 && !from->held) {
        from->held = malloc(left);
        if (!from->held) return false;
        memcpy(from->held, bytes, left);
        from->have = left;
        from->sent = 0;
    } else if (left > 0) {
        from->sent = from->have - left;
    } else {
        free(from->held);
        from->held = NULL;
        from->have = from->sent = 0;
    }
    if (from->ended && !from->held && !from->passed) {
        shutdown(to->fd, SHUT_WR);
        from->passed = true;
    }
    return true;
}

static uint32_t needs(const struct side *s, const struct side *other) {
    return (!s->ended && !s->held ? (uint32_t)EPOLLIN : 0u) | (other->held ? (uint32_t)EPOLLOUT : 0u);
}

static void work(struct side *s, uint32_t events) {
    struct pair *p = s->pair;
    struct side *other = s == &p->inside ? &p->outside : &p->inside;
    if (p->over) return;
    bool good = true;
    if (other->held && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) good = move(other, s);
    if (good && !s->held && !s->ended && (events & (EPOLLIN | EPOLLERR | EPOLLHUP))) good = move(s, other);
    // Who has hung up hears nothing more, and the client is not waited for.
    if (s == &p->outside && s->ended && (events & (EPOLLHUP | EPOLLERR))) p->inside.deaf = true;
    bool done = p->outside.passed && (p->inside.passed || p->inside.deaf);
    if (!good || done) {
        end(p, !good);
        return;
    }
    want(s, needs(s, other));
    want(other, needs(other, s));
}

static int connect_to(const char *path) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strncpy(a.sun_path, path, sizeof a.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) == 0) return fd;
    close(fd);
    return -1;
}

static void come_in(const struct forward_port *port) {
    while (count < FORWARD_CONNECTIONS_MAX) {
        int one = 1, fd = accept4(port->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) return;
        if (fd < 0) break; // no descriptor to be had: look away for a moment
        int to = connect_to(port->path);
        struct pair *p = to >= 0 ? calloc(1, sizeof *p) : NULL;
        if (!p) {
            reset(fd);
            close(fd);
            if (to >= 0) close(to);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        p->inside = (struct side){.fd = fd, .pair = p};
        p->outside = (struct side){.fd = to, .pair = p};
        want(&p->inside, EPOLLIN);
        want(&p->outside, EPOLLIN);
        count++;
    }
    listen_on(false);
}

void forward_serve(const struct forward_port *with, int n) {
    struct epoll_event batch[BATCH];
    ports = with;
    portCount = n;
    set = epoll_create1(EPOLL_CLOEXEC);
    if (set < 0) _exit(1);
    listen_on(true);
    for (;;) {
        int ready = epoll_wait(set, batch, BATCH, !listening && count < FORWARD_CONNECTIONS_MAX ? PAUSE_MS
                                                  : count == 0 ? IDLE_MS : -1);
        // Whoever comes from here on waits in the queue, and PID 1 starts another of us.
        if (ready == 0 && count == 0 && listening) _exit(0);
        if (ready < 0 && errno != EINTR) _exit(1);
        for (int i = 0; i < ready; i++) {
            const struct forward_port *port = batch[i].data.ptr;
            if (port >= ports && port < ports + portCount) come_in(port);
            else work(batch[i].data.ptr, batch[i].events);
        }
        while (garbage) {
            struct pair *p = garbage;
            garbage = p->nextFree;
            free(p);
        }
        if (count < FORWARD_CONNECTIONS_MAX && ready == 0) listen_on(true);
    }
}
