#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach.h"
#include "launch.h"
#include "limits.h"
#include "signals.h"
#include "stream.h"

enum { SPLICE_MIN = 32 << 10 };

static struct process *processes;
static unsigned running, finished;

static void check_done(struct process *p);

unsigned process_running(void) { return running; }

struct process *process_find(pid_t pid) {
    for (struct process *p = processes; p; p = p->next)
        if (p->child.pid == pid) return p;
    return NULL;
}

void process_free(struct process *p) {
    for (int i = 0; i < 2; i++) source_close(&p->out[i].source);
    source_close(&p->in);
    source_close(&p->status);
    timer_clear(&p->timeout);
    sweep_forget(&p->sweep);
    attach_detach(p);
    ring_free(&p->ring);
    if (p->exit) finished--;
    if (p->next) p->next->prev = p->prev;
    if (p->prev) p->prev->next = p->next;
    else if (processes == p) processes = p->next;
    free(p->argv);
    free(p->exit);
    loop_free(p);
}

// The list begins with the newest, so the last finished one found is the oldest.
static bool drop_oldest(const struct ring *except) {
    struct process *oldest = NULL;
    for (struct process *p = processes; p; p = p->next)
        if (p->exit && &p->ring != except && (!except || p->ring.room)) oldest = p;
    if (oldest) process_free(oldest);
    return oldest != NULL;
}

void process_start(void) { ring_make_room = drop_oldest; }

void usage_of(const struct rusage *u, uint64_t *cpuUs, uint64_t *maxRssBytes) {
    *cpuUs = (uint64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000u +
             (uint64_t)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
    *maxRssBytes = (uint64_t)u->ru_maxrss * 1024u;
}

// --- the end ---

static void write_exit(struct process *p) {
    struct text t = {0};
    int status = p->exitStatus;
    text_fmt(&t, "{\"ev\":\"exit\",");
    if (WIFEXITED(status)) text_fmt(&t, "\"code\":%d,\"signal\":null", WEXITSTATUS(status));
    else text_fmt(&t, "\"code\":null,\"signal\":\"%s\"", signal_name(WTERMSIG(status)));
    text_fmt(&t, ",\"reason\":\"%s\",\"durationUs\":%llu,\"usage\":{\"cpuUs\":%llu,\"maxRssBytes\":%llu}",
             p->reason ? p->reason : WIFEXITED(status) ? "exit" : "signal", (unsigned long long)p->durationUs,
             (unsigned long long)p->cpuUs, (unsigned long long)p->maxRssBytes);
    text_fmt(&t, ",\"outputBytes\":%llu,\"truncated\":%s}", (unsigned long long)p->outputBytes,
             p->truncated ? "true" : "false");
    text_add(&t, "", 1);
    if (t.failed) text_free(&t);
    p->exit = t.data;
}

static void check_done(struct process *p) {
    if (!p->ended || p->exit || p->sweep.pending || p->out[0].source.fd >= 0 || p->out[1].source.fd >= 0) return;
    if (running == 0) scratch_release();
    write_exit(p);
    if (p->exit) finished++;
    attach_exit(p);
    if (!p->exit || !p->detached) {
        process_free(p);
        return;
    }
    while (finished > FINISHED_MAX && drop_oldest(NULL)) {}
}

static void stream_finish(struct stream *s) {
    if (s->source.fd < 0) return;
    if (s->process->pty) source_close(&s->source);
    else drain(source_take(&s->source));
}

static void swept(struct sweep *s) { check_done(owner_of(s, struct process, sweep)); }

static void kill_now(struct process *p) {
    if (p->killed) return;
    p->killed = true;
    timer_clear(&p->timeout);
    p->sweep.mark = p->mark;
    p->sweep.leader = p->child.pid;
    p->sweep.done = swept;
    sweep_start(&p->sweep);
}

static void grace_over(struct timer *t) { kill_now(owner_of(t, struct process, timeout)); }

void process_kill(struct process *p, const char *reason) {
    if (p->ended || p->reason) return;
    p->reason = reason;
    if (p->graceMs > 0 && strcmp(reason, "timeout") == 0) {
        signal_group(p->child.pid, SIGTERM);
        timer_set(&p->timeout, (uint64_t)p->graceMs, grace_over);
        return;
    }
    kill_now(p);
}

static void timed_out(struct timer *t) { process_kill(owner_of(t, struct process, timeout), "timeout"); }

void process_cancel_all(void) {
    for (struct process *p = processes; p; p = p->next)
        if (!p->ended && !p->reason) p->reason = "cancelled";
}

static void status_ready(struct source *s, uint32_t events);
static void stream_read(struct stream *s);

static void ended(struct child *c, int status, const struct rusage *usage) {
    struct process *p = owner_of(c, struct process, child);
    running--;
    if (p->status.fd >= 0) status_ready(&p->status, 0);
    if (p->failed) {
        process_free(p);
        return;
    }
    // The rest of the group goes with it, while the zombie still keeps the group's number.
    if (p->reason && strcmp(p->reason, "timeout") == 0) kill_now(p);
    p->ended = true;
    p->exitStatus = status;
    p->durationUs = now_us() - p->startedUs;
    usage_of(usage, &p->cpuUs, &p->maxRssBytes);
    timer_clear(&p->timeout);
    source_close(&p->in);
    for (int i = 0; i < 2; i++) {
        struct stream *o = &p->out[i];
        if (o->source.fd < 0) continue;
        o->last = p->pty ? SIZE_MAX : (size_t)unread_bytes(o->source.fd);
        if (o->last == 0) stream_finish(o);
    }
    // A terminal gives no count: it is read until it has nothing more, unless the listener is behind.
    while (p->pty && p->out[0].source.fd >= 0 && (p->out[0].source.events & EPOLLIN)) stream_read(&p->out[0]);
    check_done(p);
}

// --- output ---

static void emit(struct process *p, uint8_t tag, const uint8_t *bytes, size_t n) {
    if (p->outputBytesMax) {
        uint64_t left = p->outputBytesMax - p->outputBytes;
        if (n > left) {
            n = (size_t)left;
            p->truncated = true;
        }
    }
    p->outputBytes += n;
    if (n > 0) attach_output(p, tag, bytes, n);
    if (p->truncated) process_kill(p, "limit");
}

// Much at once goes from pipe to socket inside the kernel.
static bool stream_splice(struct stream *s) {
    struct process *p = s->process;
    size_t n = p->pty ? 0 : (size_t)unread_bytes(s->source.fd);
    if (n > STREAM_FRAME_MAX - 1) n = STREAM_FRAME_MAX - 1;
    if (p->ended && n > s->last) n = s->last;
    if (n < SPLICE_MIN || (p->outputBytesMax && n > p->outputBytesMax - p->outputBytes)) return false;
    if (!attach_splice(p, s->tag, s->source.fd, n)) return false;
    p->outputBytes += n;
    if (!s->grown) grow_pipe(s->source.fd);
    s->grown = true;
    if (p->ended && (s->last -= n) == 0) stream_finish(s);
    return true;
}

static void stream_read(struct stream *s) {
    struct process *p = s->process;
    if (stream_splice(s)) return;
    size_t want = p->ended && s->last < READ_CHUNK ? s->last : READ_CHUNK;
    ssize_t n = read(s->source.fd, scratch(), want);
    if (n < 0 && errno == EINTR) return;
    if (n < 0 && errno == EAGAIN) {
        if (p->ended) stream_finish(s);
        return;
    }
    // Everybody has closed the terminal, but its session lives: closing our side now would be a hang-up that kills a
    // process about to exit. It may even be opened again, so the edge is still watched.
    if (n <= 0 && p->pty && !p->ended) {
        source_want(&s->source, EPOLLIN | EPOLLET);
        return;
    }
    if (n <= 0) {
        source_close(&s->source);
        return;
    }
    if (s->source.events & EPOLLET) source_want(&s->source, s->source.events & ~(uint32_t)EPOLLET);
    if (!s->grown && !p->pty && n >= 65536) {
        s->grown = true;
        grow_pipe(s->source.fd);
    }
    if (p->ended && !p->pty) s->last -= (size_t)n;
    emit(p, s->tag, scratch(), (size_t)n);
    if (p->ended && s->last == 0) stream_finish(s);
}

static void stream_ready(struct source *s, uint32_t events) {
    struct stream *o = owner_of(s, struct stream, source);
    struct process *p = o->process;
    if ((events & EPOLLOUT) && p->pty) {
        source_want(s, s->events & ~(uint32_t)EPOLLOUT);
        attach_stdin_ready(p);
    }
    if (s->fd >= 0 && (s->events & EPOLLIN)) stream_read(o);
    check_done(p);
}

// Held back is edge triggered: a hang-up cannot be switched off, and level triggered it would be reported for ever.
void process_flow(struct process *p, bool go) {
    for (int i = 0; i < 2; i++) {
        struct source *s = &p->out[i].source;
        if (s->fd < 0) continue;
        uint32_t out = s->events & EPOLLOUT;
        source_want(s, go ? EPOLLIN | out : EPOLLET | out);
    }
}

static void stdin_ready(struct source *s, uint32_t events) {
    struct process *p = owner_of(s, struct process, in);
    if (events & EPOLLERR) source_close(s); // nobody reads it any more
    else source_want(s, 0);
    attach_stdin_ready(p);
}

// --- the start ---

static void start_watching(struct process *p) {
    p->started = true;
    if (p->detached) {
        for (struct attacher *a = p->attachers; a; a = a->next)
            conn_json(a->conn, "{\"ev\":\"started\",\"pid\":%d}", (int)p->child.pid);
        attach_detach(p);
    } else if (p->attachers) {
        conn_json(p->attachers->conn, "{\"ev\":\"started\",\"pid\":%d}", (int)p->child.pid);
    }
    attach_stdin_ready(p); // frames that came right behind the request
    if (p->timeoutMs > 0 && !p->reason) timer_set(&p->timeout, (uint64_t)p->timeoutMs, timed_out);
    for (int i = 0; i < 2; i++)
        if (p->out[i].source.fd >= 0) source_want(&p->out[i].source, EPOLLIN);
}

// Tells why, and waits for the child that failed to be reaped: its pid must not be forgotten before.
static void fail_start(struct process *p, struct launch_report r) {
    p->failed = true;
    struct attacher *a = p->attachers;
    p->attachers = NULL;
    if (a) conn_fault(a->conn, launch_code(r), r.error, "%s: %s", launch_word(r), strerror(r.error));
    free(a);
}

static void status_ready(struct source *s, uint32_t events) {
    (void)events;
    struct process *p = owner_of(s, struct process, status);
    struct launch_report r;
    ssize_t n = read(s->fd, &r, sizeof r);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    source_close(s);
    if (n == (ssize_t)sizeof r) fail_start(p, r);
    else start_watching(p); // end of file: the exec closed it
}

// --- for those who start one ---

void process_watch_output(struct stream *s, int fd) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    source_add(&s->source, fd, EPOLLET, stream_ready);
}

void process_watch_input(struct process *p, int fd) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    source_add(&p->in, fd, 0, stdin_ready);
}

void process_adopt(struct process *p, pid_t pid, int status) {
    struct process *older = process_find(pid);
    if (older) process_free(older); // a finished one whose number was given out again
    p->child = (struct child){.pid = pid, .ended = ended};
    reap_add(&p->child);
    running++;
    fcntl(status, F_SETFL, O_NONBLOCK);
    source_add(&p->status, status, EPOLLIN, status_ready);
    p->next = processes;
    if (processes) processes->prev = p;
    processes = p;
}

void process_list(struct text *t) {
    bool first = true;
    for (struct process *p = processes; p; p = p->next) {
        if (!p->started) continue;
        text_fmt(t, "%s{\"pid\":%d,\"argv\":%s,\"user\":%u,\"detached\":%s,\"shell\":null,\"running\":%s,\"startedMs\":%llu,\"exit\":",
                 first ? "" : ",", (int)p->child.pid, p->argv, (unsigned)p->sweep.user.uid, p->detached ? "true" : "false",
                 p->ended ? "false" : "true", (unsigned long long)p->startedUnixMs);
        text_fmt(t, "%s}", p->exit ? p->exit : "null");
        first = false;
    }
}
