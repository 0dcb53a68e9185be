#include "attach.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caps.h"
#include "limits.h"
#include "pty.h"
#include "signals.h"

static void unlink_attacher(struct attacher *a) {
    for (struct attacher **at = &a->process->attachers; *at; at = &(*at)->next)
        if (*at == a) {
            *at = a->next;
            a->process->attacherCount--;
            break;
        }
    free(a);
}

static void close_attacher(struct attacher *a) {
    struct conn *c = a->conn;
    unlink_attacher(a);
    // Input, a resize or a signal may be on its way to a program that has just ended.
    c->peerMaySend = true;
    conn_end(c);
}

// --- from the host ---

static void resize(struct conn *c, struct process *p, struct request *r) {
    int cols = (int)request_int(r, "cols", 0, 1, 65535), rows = (int)request_int(r, "rows", 0, 1, 65535);
    if (!p->pty || p->out[0].source.fd < 0) conn_warn(c, "conflict", "no terminal");
    else if (r->bad || !cols || !rows) conn_warn(c, "invalid", "cols and rows must be 1 to 65535");
    else pty_resize(p->out[0].source.fd, cols, rows);
}

static void signal_op(struct conn *c, struct process *p, struct request *r) {
    char *name = request_string(r, "name");
    int number = name ? signal_number(name) : 0;
    free(name);
    if (!number) conn_warn(c, "invalid", "unknown signal");
    else if (p->ended) conn_warn(c, "conflict", "the process has ended");
    else signal_group(p->child.pid, number);
}

static bool eof(struct conn *c, struct process *p) {
    if (p->pty && p->out[0].source.fd >= 0) {
        char byte = pty_eof(p->out[0].source.fd);
        if (write(p->out[0].source.fd, &byte, 1) == 1 || errno != EAGAIN) return true;
        source_want(&p->out[0].source, p->out[0].source.events | EPOLLOUT);
        return false;
    }
    if (p->in.fd < 0) conn_warn(c, "conflict", "stdin is not open");
    source_close(&p->in);
    return true;
}

static bool control(struct conn *c, struct process *p, const struct frame *f) {
    struct request r = {0};
    struct json op;
    if (!json_check((const char *)f->data, f->len, &r.root)) conn_warn(c, "invalid", "not JSON");
    else if (!json_get(r.root, "op", &op)) conn_warn(c, "invalid", "no op");
    else if (json_equals(op, "eof")) return eof(c, p);
    else if (json_equals(op, "resize")) resize(c, p, &r);
    else if (json_equals(op, "signal")) signal_op(c, p, &r);
    else conn_warn(c, "unsupported", "unknown op");
    return true;
}

static bool input(struct conn *c, struct process *p, const struct frame *f) {
    struct source *to = p->pty ? &p->out[0].source : &p->in;
    if (to->fd < 0) {
        conn_warn(c, "conflict", "stdin is not open");
        return true;
    }
    while (c->taken < f->len) {
        ssize_t n = write(to->fd, f->data + c->taken, f->len - c->taken);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) {
            source_want(to, to->events | EPOLLOUT);
            return false;
        }
        if (n < 0) {
            if (!p->pty) source_close(to);
            return true;
        }
        c->taken += (size_t)n;
    }
    return true;
}

static bool frame(struct conn *c, const struct frame *f) {
    struct attacher *a = c->owner;
    if (f->tag == TAG_JSON) return control(c, a->process, f);
    if (f->tag == TAG_STDIN) return a->process->started ? input(c, a->process, f) : false;
    conn_warn(c, "invalid", "a host sends stdin only");
    return true;
}

void attach_stdin_ready(struct process *p) {
    for (struct attacher *a = p->attachers, *next; a; a = next) {
        next = a->next;
        conn_resume(a->conn); // may end a itself, but never another one
    }
}

// --- to the host ---

// Sends kept output until the connection is full. False: the attacher is gone.
static void feed(struct attacher *a) {
    struct process *p = a->process;
    const uint8_t *bytes;
    uint8_t tag;
    while (!conn_full(a->conn)) {
        if (a->at < p->ring.from) {
            conn_json(a->conn, "{\"ev\":\"resync\",\"dropped\":%llu}", (unsigned long long)(p->ring.from - a->at));
            a->at = p->ring.from;
        }
        size_t n = ring_peek(&p->ring, a->at, &bytes, &tag, READ_CHUNK);
        if (n == 0) break;
        conn_send(a->conn, tag, bytes, n);
        a->at += n;
    }
    if (!p->exit || a->at < p->ring.to) return;
    struct text t = {0};
    text_add(&t, p->exit, strlen(p->exit));
    conn_text(a->conn, &t);
    close_attacher(a);
}

// Somebody who wants every byte, or is still to come, has half of what can be kept still to read.
static bool is_held(const struct process *p) {
    if (p->held && p->ring.to - p->ring.from > p->ring.max / 2) return true;
    for (struct attacher *a = p->attachers; a; a = a->next)
        if (a->hold && p->ring.to - a->at > p->ring.max / 2) return true;
    return false;
}

void attach_output(struct process *p, uint8_t tag, const uint8_t *bytes, size_t n) {
    if (p->detached) {
        ring_put(&p->ring, tag, bytes, n);
        for (struct attacher *a = p->attachers, *next; a; a = next) {
            next = a->next;
            feed(a);
        }
        if (is_held(p)) process_flow(p, false);
    } else if (p->attachers) {
        conn_send(p->attachers->conn, tag, bytes, n);
        if (conn_full(p->attachers->conn)) process_flow(p, false);
    }
}

bool attach_splice(struct process *p, uint8_t tag, int pipe, size_t n) {
    if (p->detached || !p->attachers || !conn_splice(p->attachers->conn, tag, pipe, n)) return false;
    if (conn_full(p->attachers->conn)) process_flow(p, false);
    return true;
}

void attach_exit(struct process *p) {
    for (struct attacher *a = p->attachers, *next; a; a = next) {
        next = a->next;
        if (p->detached) {
            feed(a);
            continue;
        }
        struct text t = {0};
        if (p->exit) text_add(&t, p->exit, strlen(p->exit)), conn_text(a->conn, &t);
        close_attacher(a);
    }
}

void attach_detach(struct process *p) {
    while (p->attachers) close_attacher(p->attachers);
}

static void owner_drained(struct conn *c) {
    struct attacher *a = c->owner;
    if (a->process->started) process_flow(a->process, true);
}

static void owner_gone(struct conn *c) {
    struct process *p = ((struct attacher *)c->owner)->process;
    unlink_attacher(c->owner);
    if (p->detached) return; // closed between the request and "started": it was asked to live on
    process_kill(p, "cancelled");
    if (p->started) process_flow(p, true); // nobody reads it any more, so it goes nowhere
}

static void listener_drained(struct conn *c) {
    struct process *p = ((struct attacher *)c->owner)->process;
    feed(c->owner);
    if (!is_held(p)) process_flow(p, true);
}

static void listener_gone(struct conn *c) {
    struct process *p = ((struct attacher *)c->owner)->process;
    unlink_attacher(c->owner);
    if (!is_held(p)) process_flow(p, true);
}

static const struct conn_ops owner = {frame, owner_drained, owner_gone};
static const struct conn_ops listener = {frame, listener_drained, listener_gone};

static struct attacher *add(struct process *p, struct conn *c, const struct conn_ops *ops) {
    struct attacher *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    *a = (struct attacher){.next = p->attachers, .process = p, .conn = c};
    p->attachers = a;
    p->attacherCount++;
    c->owner = a;
    c->ops = ops;
    return a;
}

bool attach_owner(struct process *p, struct conn *c) {
    if (add(p, c, &owner)) return true;
    conn_fault(c, "limit", ENOMEM, "out of memory");
    return false;
}

void op_attach(struct conn *c, struct request *r) {
    pid_t pid = (pid_t)request_int(r, "pid", 0, 1, INT32_MAX);
    uint64_t after = (uint64_t)request_int(r, "after", 0, 0, INT64_MAX);
    bool hold = request_bool(r, "hold", false);
    struct process *p = r->bad ? NULL : process_find(pid);
    if (r->bad) {
        conn_fault(c, "invalid", 0, "bad field: %s", r->bad);
    } else if (!p || !p->started) {
        conn_fault(c, "not_found", 0, "no such process");
    } else if (!p->detached) {
        conn_fault(c, "conflict", 0, "the process is not detached");
    } else if (p->attacherCount >= ATTACHERS_MAX) {
        conn_fault(c, "limit", 0, "too many attachers");
    } else {
        struct attacher *a = add(p, c, &listener);
        if (!a) {
            conn_fault(c, "limit", ENOMEM, "out of memory");
            return;
        }
        a->hold = hold;
        p->held = false;
        uint64_t dropped = p->ring.from > after ? p->ring.from - after : 0;
        a->at = after > p->ring.to ? p->ring.to : after < p->ring.from ? p->ring.from : after;
        conn_json(c, "{\"ev\":\"attached\",\"pid\":%d,\"from\":%llu,\"dropped\":%llu,\"running\":%s}", (int)pid,
                  (unsigned long long)a->at, (unsigned long long)dropped, p->ended ? "false" : "true");
        feed(a);
        if (!is_held(p)) process_flow(p, true);
    }
}
