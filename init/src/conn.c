#include "conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "limits.h"

enum { IN_FIRST = 2048, DISCARD = 4096 };

static struct conn *conns;
static unsigned counts[2], helpers;

static bool ignore_frame(struct conn *c, const struct frame *f) { return (void)c, (void)f, true; }
static void ignore_gone(struct conn *c) { (void)c; }
const struct conn_ops conn_idle = {ignore_frame, NULL, ignore_gone};

static void update(struct conn *c);
static void pump(struct conn *c);

unsigned conn_count(bool sudo) { return counts[sudo] + (sudo ? 0 : helpers); }
void conn_count_helper(int delta) { helpers = (unsigned)((int)helpers + delta); }

static void conn_free(struct conn *c) {
    source_close(&c->source);
    timer_clear(&c->timer);
    for (int i = 0; i < 3; i++)
        if (c->passed[i] >= 0) close(c->passed[i]);
    free(c->in);
    c->in = NULL;
    text_free(&c->out);
    if (c->next) c->next->prev = c->prev;
    if (c->prev) c->prev->next = c->next;
    else conns = c->next;
    counts[c->sudo]--;
    loop_free(c);
}

static void drop(struct conn *c) {
    const struct conn_ops *ops = c->ops;
    c->ops = &conn_idle;
    c->ending = true;
    ops->gone(c);
    conn_free(c);
}

static void linger_over(struct timer *t) { conn_free(owner_of(t, struct conn, timer)); }

// Closing a Unix socket with unread bytes resets the peer, which might then never read our last frame.
static void finish(struct conn *c) {
    int unread = 0;
    // Who may still be sending would, closed on at once, see a broken pipe instead of the reason or the end.
    if (!c->peerMaySend && ioctl(c->source.fd, FIONREAD, &unread) == 0 && unread == 0) {
        conn_free(c);
        return;
    }
    shutdown(c->source.fd, SHUT_WR);
    c->lingering = true;
    timer_set(&c->timer, LINGER_MS, linger_over);
    update(c);
}

static bool flush(struct conn *c) {
    while (c->outSent < c->out.len) {
        ssize_t n = send(c->source.fd, c->out.data + c->outSent, c->out.len - c->outSent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN;
        c->outSent += (size_t)n;
    }
    text_free(&c->out);
    c->outSent = 0;
    return true;
}

static void update(struct conn *c) {
    // Once ending, only an error ends it sooner: a peer that half-closed may still be reading our last frames.
    uint32_t events = c->ending ? 0 : EPOLLRDHUP;
    bool wantsInput = c->lingering || (!c->ending && !c->paused && c->out.len < OUT_BUFFER_MAX);
    if (wantsInput) events |= EPOLLIN;
    if (c->out.len > 0 && !c->lingering) events |= EPOLLOUT;
    source_want(&c->source, events);
}

static void discard(struct conn *c) {
    uint8_t waste[DISCARD];
    ssize_t n = read(c->source.fd, waste, sizeof waste);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) conn_free(c);
}

static void ready(struct source *s, uint32_t events) {
    struct conn *c = owner_of(s, struct conn, source);
    if (c->lingering) {
        discard(c);
        return;
    }
    if (events & (EPOLLERR | EPOLLHUP)) {
        drop(c);
        return;
    }
    if (events & EPOLLOUT) {
        if (!flush(c)) {
            drop(c);
            return;
        }
        if (c->out.len == 0) {
            if (c->ending) {
                finish(c);
                return;
            }
            if (c->ops->drained) c->ops->drained(c);
            if (c->source.fd < 0) return;
        }
    }
    if ((events & EPOLLIN) && !c->ending) {
        pump(c);
        if (c->source.fd < 0) return;
    }
    // A peer that half-closes has cancelled, even if frames of it are still waiting behind a full pipe.
    if ((events & EPOLLRDHUP) && !c->ending && !(c->source.events & EPOLLIN)) {
        drop(c);
        return;
    }
    update(c);
}

// Room for the frame at the head grows with what has arrived, not with what a header promises.
static bool make_room(struct conn *c, size_t wanted) {
    if (c->inRoom > c->inHave) return true;
    size_t room = c->inRoom ? c->inRoom * 2 : IN_FIRST;
    if (room > wanted) room = wanted > IN_FIRST ? wanted : IN_FIRST;
    if (room <= c->inHave) room = c->inHave + IN_FIRST;
    uint8_t *in = realloc(c->in, room);
    if (!in) return false;
    c->in = in;
    c->inRoom = room;
    return true;
}

static ssize_t receive(struct conn *c) {
    uint8_t *to = c->in + c->inHave;
    size_t room = c->inRoom - c->inHave;
    if (!c->wantsFds) return read(c->source.fd, to, room);
    union {
        char space[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {to, room};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
    ssize_t n = recvmsg(c->source.fd, &m, MSG_CMSG_CLOEXEC);
    // The kernel gathers all descriptors of a message in one header.
    struct cmsghdr *h = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
        size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
            if (i < 3 && c->passed[i] < 0) c->passed[i] = fd;
            else close(fd);
            c->wantsFds = false;
        }
    }
    return n;
}

// Hands complete frames to the owner; false when it cannot go on (gone, ended or held back).
static bool dispatch(struct conn *c, size_t *wanted) {
    size_t at = 0;
    bool go = true;
    while (go) {
        struct frame f;
        enum frame_state state = frame_read(c->in + at, c->inHave - at, &f);
        if (state == FRAME_MORE) {
            *wanted = f.wanted;
            break;
        }
        if (state == FRAME_BAD) {
            void (*gone)(struct conn *) = c->ops->gone;
            c->ops = &conn_idle;
            gone(c);
            conn_fault(c, f.code, 0, "%s", f.why);
            break;
        }
        if (!c->ops->frame(c, &f)) {
            c->paused = true;
            go = false;
        } else {
            at += f.used;
            c->taken = 0;
        }
        if (c->source.fd < 0 || c->ending) return false;
        if (c->out.len >= OUT_BUFFER_MAX) go = false;
    }
    if (!c->in) return false;
    memmove(c->in, c->in + at, c->inHave - at);
    c->inHave -= at;
    return go && !c->ending;
}

static void pump(struct conn *c) {
    if (c->pumping) return;
    c->pumping = true;
    size_t wanted = IN_FIRST;
    bool go = c->inHave == 0 || dispatch(c, &wanted);
    // A few reads per turn: one busy host connection must not starve the others.
    for (int turn = 0; go && turn < 4; turn++) {
        if (!make_room(c, wanted)) {
            drop(c);
            return;
        }
        ssize_t n = receive(c);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            drop(c);
            return;
        }
        if (n < 0) break;
        c->inHave += (size_t)n;
        go = dispatch(c, &wanted);
    }
    c->pumping = false;
    if (c->source.fd < 0) return;
    if (c->inHave == 0) {
        free(c->in);
        c->in = NULL;
        c->inRoom = 0;
    }
    update(c);
}

void conn_resume(struct conn *c) {
    if (!c->paused || c->ending) return;
    c->paused = false;
    pump(c);
}

bool conn_full(const struct conn *c) { return c->out.len > 0; }

static void send_parts(struct conn *c, const void *head, size_t headLen, const void *data, size_t n) {
    if (c->source.fd < 0 || c->ending) return;
    size_t sent = 0;
    if (c->out.len == 0) {
        struct iovec parts[2] = {{(void *)(uintptr_t)head, headLen}, {(void *)(uintptr_t)data, n}};
        struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t got = sendmsg(c->source.fd, &m, MSG_NOSIGNAL);
        if (got > 0) sent = (size_t)got; // an error shows up as an event: nothing may be freed in here
    }
    if (sent < headLen) text_add(&c->out, (const char *)head + sent, headLen - sent), sent = headLen;
    text_add(&c->out, (const char *)data + (sent - headLen), n - (sent - headLen));
    if (c->out.failed) shutdown(c->source.fd, SHUT_RDWR);
    update(c);
}

void conn_send(struct conn *c, uint8_t tag, const void *data, size_t n) {
    uint8_t head[5];
    frame_header(head, tag, n);
    send_parts(c, head, sizeof head, data, n);
}

bool conn_splice(struct conn *c, uint8_t tag, int pipe, size_t n) {
    uint8_t head[5];
    if (c->source.fd < 0 || c->ending || c->out.len > 0) return false;
    frame_header(head, tag, n);
    if (send(c->source.fd, head, sizeof head, MSG_NOSIGNAL | MSG_MORE) != (ssize_t)sizeof head) return false;
    for (;;) {
        ssize_t moved = splice(pipe, NULL, c->source.fd, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (moved > 0 && (n -= (size_t)moved) > 0) continue;
        if (moved < 0 && errno == EINTR) continue;
        break;
    }
    // The frame's length is promised, and the socket is full: the rest waits here instead of in the pipe.
    while (n > 0 && text_reserve(&c->out, n)) {
        ssize_t got = read(pipe, c->out.data + c->out.len, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        c->out.len += (size_t)got;
        n -= (size_t)got;
    }
    if (n > 0) shutdown(c->source.fd, SHUT_RDWR); // cannot happen, and a torn frame must not look like a good one
    update(c);
    return true;
}

void conn_text(struct conn *c, struct text *t) {
    uint8_t head[5];
    if (t->failed) {
        text_free(t);
        conn_fault(c, "limit", ENOMEM, "out of memory");
        return;
    }
    frame_header(head, 0, t->len - 1);
    send_parts(c, head, FRAME_HEADER, t->data, t->len);
    text_free(t);
}

void conn_json(struct conn *c, const char *format, ...) {
    char json[512];
    uint8_t head[5];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(json, sizeof json, format, args);
    va_end(args);
    if (n <= 0 || (size_t)n >= sizeof json) return;
    frame_header(head, 0, (size_t)n - 1);
    send_parts(c, head, FRAME_HEADER, json, (size_t)n);
}

void fault_text(struct text *t, const char *code, int error, const char *format, va_list args) {
    char message[256];
    vsnprintf(message, sizeof message, format, args);
    text_fmt(t, "{\"ev\":\"fault\",\"code\":\"%s\",\"message\":", code);
    text_quote(t, message, strlen(message));
    if (error) text_fmt(t, ",\"errno\":%d", error);
    text_add(t, "}", 1);
}

void conn_fault(struct conn *c, const char *code, int error, const char *format, ...) {
    struct text t = {0};
    va_list args;
    va_start(args, format);
    fault_text(&t, code, error, format, args);
    va_end(args);
    if (t.failed) text_free(&t);
    else conn_text(c, &t);
    c->peerMaySend = true;
    conn_end(c);
}

void conn_warn(struct conn *c, const char *code, const char *format, ...) {
    char message[128];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    conn_json(c, "{\"ev\":\"warn\",\"code\":\"%s\",\"message\":\"%s\"}", code, message);
}

void conn_end(struct conn *c) {
    if (c->ending || c->source.fd < 0) return;
    c->ops = &conn_idle;
    c->owner = NULL;
    c->ending = true;
    timer_clear(&c->timer);
    if (c->out.len == 0) finish(c);
    else update(c);
}

void conn_give_up(struct conn *c) {
    c->ops = &conn_idle;
    c->ending = true;
    conn_free(c);
}

static void refuse(int fd) {
    static const char body[] = "{\"ev\":\"fault\",\"code\":\"limit\",\"message\":\"too many connections\"}";
    uint8_t head[5];
    frame_header(head, 0, sizeof body - 2);
    struct iovec parts[2] = {{head, FRAME_HEADER}, {(void *)(uintptr_t)body, sizeof body - 1}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
    sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

static void too_slow(struct timer *t) { drop(owner_of(t, struct conn, timer)); }

void conn_accept(int fd, bool sudo, const struct conn_ops *first) {
    if (conn_count(sudo) >= (unsigned)(sudo ? SUDO_CONNECTIONS_MAX : CONNECTIONS_MAX)) {
        refuse(fd);
        return;
    }
    struct conn *c = calloc(1, sizeof *c);
    if (!c || !source_add(&c->source, fd, EPOLLIN | EPOLLRDHUP, ready)) {
        free(c);
        close(fd);
        return;
    }
    c->ops = first;
    c->sudo = c->wantsFds = sudo;
    c->passed[0] = c->passed[1] = c->passed[2] = -1;
    c->next = conns;
    if (conns) conns->prev = c;
    conns = c;
    counts[sudo]++;
    if (sudo) timer_set(&c->timer, SUDO_REQUEST_MS, too_slow);
}
