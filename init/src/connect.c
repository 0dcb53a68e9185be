// A connection to something that listens inside: the helper relays raw bytes both ways.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "file.h"
#include "helper.h"

// A pipe has a place for each piece of memory, however large: these hold what a connection has in its buffers.
enum { PIPE_BYTES = 256 << 10, COPY_BYTES = 64 << 10 };

struct direction {
    int from, to;
    int pipe[2];  // the bytes pass through it without being copied; -1 where that cannot be
    char *buffer; // they are copied through this instead
    size_t have, sent;
    bool ended, closed; // read everything; passed that on
};

static int connect_port(uint16_t port) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&v4, sizeof v4) != 0) {
        if (fd >= 0) close(fd);
        fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&v6, sizeof v6) != 0) return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static int connect_path(struct helper *h, const char *path) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path) helper_fault(h, "invalid", ENAMETOOLONG, "path is too long for a socket");
    strcpy(a.sun_path, path);
    // Not blocking: a listener that never accepts must not hold the connect; its queue being full is "unavailable".
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0) return fd;
    if (errno == EACCES || errno == EPERM) helper_fault(h, NULL, errno, "%s", strerror(errno));
    return -1;
}

static ssize_t take(struct direction *d) {
    if (!d->buffer) {
        ssize_t n = splice(d->from, NULL, d->pipe[1], NULL, PIPE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (n >= 0 || errno != EINVAL) return n;
        d->buffer = malloc(COPY_BYTES); // this kind of connection has no such way, and nothing is in the pipe yet
        if (!d->buffer) return -1;
    }
    return recv(d->from, d->buffer, COPY_BYTES, 0);
}

static ssize_t give(struct direction *d) {
    size_t left = d->have - d->sent;
    if (d->buffer) return send(d->to, d->buffer + d->sent, left, MSG_NOSIGNAL);
    return splice(d->pipe[0], NULL, d->to, NULL, left, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

// Moves what can be moved. False when the whole relay is over.
static bool move(struct direction *d) {
    if (!d->ended && d->have == 0) {
        ssize_t n = take(d);
        if (n > 0) d->have = (size_t)n, d->sent = 0;
        else if (n == 0) d->ended = true;
        else if (errno != EAGAIN && errno != EINTR) return false;
    }
    while (d->have > d->sent) {
        ssize_t n = give(d);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return true;
        if (n <= 0) return false;
        d->sent += (size_t)n;
    }
    d->have = d->sent = 0;
    if (d->ended && !d->closed) {
        shutdown(d->to, SHUT_WR);
        d->closed = true;
    }
    return true;
}

static struct direction direction(int from, int to) {
    struct direction d = {.from = from, .to = to, .pipe = {-1, -1}};
    if (pipe2(d.pipe, O_CLOEXEC | O_NONBLOCK) == 0) fcntl(d.pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
    else if (!(d.buffer = malloc(COPY_BYTES))) _exit(1);
    return d;
}

static void relay(struct helper *h, int peer) {
    struct direction to = direction(h->fd, peer), back = direction(peer, h->fd);
    signal(SIGPIPE, SIG_IGN); // unlike a send, what comes out of a pipe cannot be asked to do without
    fcntl(h->fd, F_SETFL, O_NONBLOCK);
    fcntl(peer, F_SETFL, O_NONBLOCK);
    while (!(to.closed && back.closed)) {
        short a = (short)((!to.ended && !to.have ? POLLIN : 0) | (back.have ? POLLOUT : 0));
        short b = (short)((!back.ended && !back.have ? POLLIN : 0) | (to.have ? POLLOUT : 0));
        // A side that wants nothing is left out, or its hang-up would wake us without end.
        struct pollfd p[2] = {{a ? h->fd : -1, a, 0}, {b ? peer : -1, b, 0}};
        if (poll(p, 2, -1) < 0 && errno != EINTR) break;
        if ((p[0].revents || p[1].revents) && (!move(&to) || !move(&back))) break;
    }
    _exit(0);
}

static void connect_work(struct helper *h) {
    int64_t port = request_int(h->request, "port", 0, 1, 65535);
    char *path = request_string(h->request, "path");
    if (h->request->bad || !port == !path) helper_fault(h, "invalid", 0, "either a port or a path");
    int fd = port ? connect_port((uint16_t)port) : connect_path(h, helper_path(h, "path"));
    if (fd < 0) helper_fault(h, "unavailable", errno, "nobody listens there");
    helper_json(h, "{\"ev\":\"ok\"}");
    // What came right behind the request is already payload.
    for (size_t at = 0; at < h->inHave;) {
        ssize_t n = send(fd, h->in + at, h->inHave - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR && errno != EAGAIN) _exit(0);
        if (n > 0) at += (size_t)n;
    }
    relay(h, fd);
}

void op_connect(struct conn *c, struct request *r) { helper_run(c, r, connect_work); }
