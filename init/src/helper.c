#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "caps.h"
#include "command.h"
#include "limits.h"
#include "reap.h"

void (*helper_cleanup)(void);

static void ended(struct child *c, int status, const struct rusage *usage) {
    (void)status, (void)usage;
    conn_count_helper(-1);
    free(c);
}

__attribute__((noreturn)) static void leave(int code) {
    if (helper_cleanup) helper_cleanup();
    _exit(code);
}

static void terminated(int number) {
    (void)number;
    leave(1); // unlink and _exit are safe in a handler
}

static void child(struct conn *c, struct request *r, const struct user *u, void (*work)(struct helper *)) {
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    struct helper h = {.request = r};
    h.fd = dup2(c->source.fd, 0);
    // Frames after the request were already read into the connection's buffer: they are ours now.
    struct frame first;
    if (frame_read(c->in, c->inHave, &first) == FRAME_READY) {
        h.in = c->in + first.used;
        h.inHave = c->inHave - first.used;
    }
    uint8_t *rest = h.inHave ? malloc(h.inHave) : NULL;
    if (rest) memcpy(rest, h.in, h.inHave);
    h.in = rest;
    h.inRoom = h.inHave;
    syscall(SYS_close_range, 1u, ~0u, 0u);
    fcntl(h.fd, F_SETFL, fcntl(h.fd, F_GETFL) & ~O_NONBLOCK);
    setsid();
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) signal(ends[i], terminated);
    int error = caps_become(u);
    if (error) helper_fault(&h, "forbidden", error, "cannot become that user");
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    work(&h);
    helper_done(&h);
}

void helper_run(struct conn *c, struct request *r, void (*work)(struct helper *)) {
    struct user u;
    if (!command_user(c, r, &u)) return;
    struct child *me = calloc(1, sizeof *me);
    pid_t pid = me ? reap_fork() : -1;
    if (pid == 0) child(c, r, &u, work);
    if (pid < 0) {
        int error = errno;
        free(me);
        conn_fault(c, "limit", error, "no process for this operation");
        return;
    }
    *me = (struct child){.pid = pid, .ended = ended};
    reap_add(me);
    conn_count_helper(1);
    conn_give_up(c);
}

void helper_write(struct helper *h, const void *bytes, size_t n) {
    const char *at = bytes;
    while (n > 0) {
        ssize_t sent = send(h->fd, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) leave(0);
        at += sent;
        n -= (size_t)sent;
    }
}

void helper_send(struct helper *h, uint8_t tag, const void *data, size_t n) {
    uint8_t head[5];
    frame_header(head, tag, n);
    struct iovec parts[2] = {{head, sizeof head}, {(void *)(uintptr_t)data, n}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t sent = sendmsg(h->fd, &m, MSG_NOSIGNAL);
    if (sent < 0) leave(0);
    size_t done = (size_t)sent;
    if (done < sizeof head) helper_write(h, head + done, sizeof head - done), done = sizeof head;
    helper_write(h, (const char *)data + (done - sizeof head), n - (done - sizeof head));
}

void helper_text(struct helper *h, struct text *t) {
    uint8_t head[5];
    if (t->failed) leave(1);
    frame_header(head, 0, t->len - 1);
    helper_write(h, head, FRAME_HEADER);
    helper_write(h, t->data, t->len);
    text_free(t);
}

void helper_json(struct helper *h, const char *format, ...) {
    char json[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(json, sizeof json, format, args);
    va_end(args);
    struct text t = {0};
    if (n > 0 && (size_t)n < sizeof json) text_add(&t, json, (size_t)n), helper_text(h, &t);
}

static const char *code_of(int error) {
    switch (error) {
    case ENOENT: return "not_found";
    case EACCES: case EPERM: case EROFS: return "forbidden";
    case EEXIST: case ENOTEMPTY: case EBUSY: return "conflict";
    case ENOSPC: case EDQUOT: case EFBIG: case EMFILE: case ENFILE: case ENOMEM: case EAGAIN: return "limit";
    case ENOTDIR: case EISDIR: case EINVAL: case ENAMETOOLONG: case ELOOP: case EXDEV: return "invalid";
    case ECONNREFUSED: case ENOTSOCK: case EPROTOTYPE: case ETIMEDOUT: return "unavailable";
    case ENOSYS: case EOPNOTSUPP: return "unsupported";
    default: return "internal";
    }
}

void helper_fault(struct helper *h, const char *code, int error, const char *format, ...) {
    struct text t = {0};
    va_list args;
    va_start(args, format);
    fault_text(&t, code ? code : code_of(error), error, format, args);
    va_end(args);
    if (helper_cleanup) helper_cleanup();
    helper_cleanup = NULL;
    helper_text(h, &t);
    helper_done(h);
}

// Unread bytes would turn our close into a reset, which can cost the host our last frame.
void helper_done(struct helper *h) {
    char waste[4096];
    struct timeval patience = {LINGER_MS / 1000, 0};
    shutdown(h->fd, SHUT_WR);
    setsockopt(h->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    uint64_t until = now_ms() + LINGER_MS;
    while (recv(h->fd, waste, sizeof waste, 0) > 0 && now_ms() < until) {}
    _exit(0);
}

enum helper_state helper_next(struct helper *h, struct frame *f) {
    static size_t used; // of the frame handed out before
    if (used) {
        memmove(h->in, h->in + used, h->inHave - used);
        h->inHave -= used;
        used = 0;
    }
    for (;;) {
        enum frame_state state = h->inHave ? frame_read(h->in, h->inHave, f) : (f->wanted = 4096, FRAME_MORE);
        if (state == FRAME_BAD) return HELPER_BAD;
        if (state == FRAME_READY) {
            used = f->used;
            return HELPER_FRAME;
        }
        if (h->inRoom < f->wanted || h->inRoom == h->inHave) {
            size_t room = f->wanted > h->inHave + 4096 ? f->wanted : h->inHave + 4096;
            uint8_t *in = realloc(h->in, room);
            if (!in) return HELPER_BAD;
            h->in = in;
            h->inRoom = room;
        }
        ssize_t n = recv(h->fd, h->in + h->inHave, h->inRoom - h->inHave, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return HELPER_GONE;
        h->inHave += (size_t)n;
    }
}

char *helper_path(struct helper *h, const char *key) {
    char *path = request_string(h->request, key);
    if (!path || h->request->bad) helper_fault(h, "invalid", 0, "%s must be a path", key);
    if (path[0] != '/') helper_fault(h, "invalid", 0, "%s must be absolute", key);
    if (strlen(path) > PATH_BYTES_MAX) helper_fault(h, "invalid", ENAMETOOLONG, "%s is too long", key);
    return path;
}
