// One command in a shell.
//
// The shell reads lines that we write ("the driver"). For a run we put the text into a memory file and let the shell
// source it with the output pipe as 1 and 2, /dev/null as 0, and our own descriptors closed; the next line reports the
// status and the directory on a pipe that only the shell has. Shells are started interactive (-i), because only an
// interactive shell can be told to forget what it is doing and read on: SIGPROF has a trap that sends SIGINT to itself
// between two commands, where it unwinds everything.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limits.h"
#include "shell.h"
#include "signals.h"
#include "stream.h"

enum { ROUND_MS = 150, PROBE_MS = 1000 };

static void run_free(struct run *u) {
    timer_clear(&u->timeout);
    timer_clear(&u->probe);
    text_free(&u->command);
    pid_list_free(&u->before);
    loop_free(u);
}

// `before` and the report line go out in one write: a shell may be gone (exec true) right after the first line.
static bool say_report(struct run *u, const char *before) {
    char line[256];
    snprintf(line, sizeof line, "%s{ command printf '%%s %%s ' %llu \"$?\"; command pwd; command printf '\\0'; } >&9\n",
             before, (unsigned long long)u->number);
    return shell_say(u->shell, line);
}

// --- the end ---

static void send_done(struct run *u) {
    struct shell *s = u->shell;
    struct text t = {0};
    text_fmt(&t, "{\"ev\":\"done\",");
    if (u->code >= 0) text_fmt(&t, "\"code\":%d", u->code);
    else text_fmt(&t, "\"code\":null");
    if (u->signal) text_fmt(&t, ",\"signal\":\"%s\"", signal_name(u->signal));
    else text_fmt(&t, ",\"signal\":null");
    text_fmt(&t, ",\"reason\":\"%s\",\"cwd\":", u->reason ? u->reason : u->signal ? "signal" : "exit");
    text_quote(&t, s->cwd, strlen(s->cwd));
    text_fmt(&t, ",\"durationUs\":%llu,\"outputBytes\":%llu,\"truncated\":%s,\"restarted\":%s}",
             (unsigned long long)(now_us() - u->startedUs), (unsigned long long)u->outputBytes,
             u->truncated ? "true" : "false", u->restarted ? "true" : "false");
    conn_text(u->conn, &t);
    conn_end(u->conn);
}

void run_finish(struct run *u) {
    struct shell *s = u->shell;
    if (u->conn) send_done(u);
    if (s->run == u) s->run = NULL;
    if (s->queued == u) s->queued = NULL;
    run_free(u);
    shell_idle(s);
}

// Everything the command wrote before it ended is still in the pipe; after that it is over.
static void flush(struct run *u) {
    struct shell *s = u->shell;
    u->phase = RUN_FLUSHING;
    timer_clear(&u->timeout);
    timer_clear(&u->probe);
    timer_clear(&s->abort);
    u->last = s->out.fd >= 0 ? (size_t)unread_bytes(s->out.fd) : 0;
    if (u->last == 0) run_finish(u);
}

void run_report(struct run *u, int code) {
    if (u->phase == RUN_RUNNING) {
        u->code = code;
        u->shell->lastCode = code;
        flush(u);
    } else if (u->phase == RUN_ABORTING && !u->reported) {
        u->reported = true; // it is back; once more for what it may have started in the meantime
        u->shell->lastCode = code;
        sweep_forget(&u->shell->sweep);
        sweep_start(&u->shell->sweep);
    }
}

void run_shell_ended(struct run *u, int status) {
    u->restarted = true;
    if (u->phase == RUN_RUNNING) {
        if (WIFEXITED(status)) u->code = WEXITSTATUS(status);
        else u->signal = WTERMSIG(status);
    }
    if (u->phase != RUN_RECEIVING && u->phase != RUN_WAITING) flush(u);
}

void run_swept(struct run *u) {
    if (u->phase == RUN_ABORTING && u->reported) flush(u);
}

// --- abort ---

static void abort_round(struct timer *t) {
    struct shell *s = owner_of(t, struct shell, abort);
    if (!s->run || s->run->phase != RUN_ABORTING) return;
    s->abortRound++;
    if (s->abortRound * ROUND_MS >= ABORT_MS) {
        shell_kill(s, SIGKILL); // its end ends the run
        return;
    }
    // A shell that sits in a blocking builtin (opening a FIFO, say) does not get to its traps. The interrupt may also
    // cost it the report line it was just reading, so it is asked again.
    if (!s->run->reported) {
        shell_kill(s, SIGINT);
        say_report(s->run, "");
    }
    if (!s->sweep.pending) sweep_start(&s->sweep);
    timer_set(&s->abort, ROUND_MS, abort_round);
}

void run_abort(struct run *u, const char *reason) {
    struct shell *s = u->shell;
    if (u->phase == RUN_RECEIVING || u->phase == RUN_WAITING) {
        u->reason = reason;
        run_finish(u);
        return;
    }
    if (u->phase != RUN_RUNNING) return;
    u->phase = RUN_ABORTING;
    u->reason = reason;
    u->code = -1;
    timer_clear(&u->timeout);
    timer_clear(&u->probe);
    s->abortRound = 0;
    // First the shell, then what it waits for: so its trap is pending before the next command could begin.
    shell_kill(s, SIGPROF);
    s->sweep.spare = &u->before;
    s->sweep.spareLeader = true;
    s->sweep.leader = s->child.pid;
    timer_set(&s->abort, ROUND_MS, abort_round);
    sweep_start(&s->sweep);
    if (s->run == u && u->phase == RUN_ABORTING && !say_report(u, "")) shell_kill(s, SIGKILL);
}

static void timed_out(struct timer *t) { run_abort(owner_of(t, struct run, timeout), "timeout"); }

// --- output ---

static void emit(struct run *u, const uint8_t *bytes, size_t n) {
    if (u->phase == RUN_ABORTING && u->truncated) return;
    if (u->outputBytesMax && n > u->outputBytesMax - u->outputBytes) {
        n = (size_t)(u->outputBytesMax - u->outputBytes);
        u->truncated = true;
    }
    u->outputBytes += n;
    if (n > 0 && u->conn) conn_send(u->conn, TAG_STDOUT, bytes, n);
    if (u->conn && conn_full(u->conn)) source_want(&u->shell->out, EPOLLET);
}

void run_output(struct shell *s) {
    struct run *u = s->run;
    bool flushing = u && u->phase == RUN_FLUSHING;
    size_t want = flushing && u->last < READ_CHUNK ? u->last : READ_CHUNK;
    ssize_t n = read(s->out.fd, scratch(), want);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        source_close(&s->out);
        if (flushing) run_finish(u);
        return;
    }
    if (n >= 65536) grow_pipe(s->out.fd);
    if (!u || u->phase < RUN_RUNNING) return; // background jobs between runs: nobody listens
    emit(u, scratch(), (size_t)n);
    if (flushing && (u->last -= (size_t)n) == 0) run_finish(u);
    else if (u->truncated && u->phase == RUN_RUNNING) run_abort(u, "limit");
}

// --- the start ---

static void probe(struct timer *t) {
    struct run *u = owner_of(t, struct run, probe);
    // Some shells throw away the lines they have read when they are interrupted, and our report line with them.
    // Asked again now and then, they answer; all others answer twice, and the second answer is for nobody.
    if (!say_report(u, "")) return;
    u->probeMs *= 2;
    timer_set(&u->probe, u->probeMs, probe);
}

void run_begin(struct run *u) {
    struct shell *s = u->shell;
    struct text t = {0};
    u->phase = RUN_RUNNING;
    u->number = ++s->runs;
    u->startedUs = now_us();
    // $? of the previous command is still there for this one.
    text_fmt(&t, "exec 8<&-;");
    if (s->lastCode) text_fmt(&t, "(exit %d);", s->lastCode & 255);
    text_add(&t, u->command.data, u->command.len);
    text_add(&t, "\n", 1);
    text_free(&u->command);
    bool good = !t.failed && ftruncate(s->text, 0) == 0;
    for (size_t at = 0; good && at < t.len;) {
        ssize_t n = pwrite(s->text, t.data + at, t.len - at, (off_t)at);
        if (n <= 0) good = false;
        else at += (size_t)n;
    }
    text_free(&t);
    u->before = pids_now();
    good = good && say_report(u, "command . /proc/self/fd/8 8<&6 6<&- </dev/null >&7 2>&7 7>&- 9>&-\n");
    if (!good) {
        shell_kill(s, SIGKILL);
        return;
    }
    if (u->timeoutMs > 0) timer_set(&u->timeout, (uint64_t)u->timeoutMs, timed_out);
    u->probeMs = PROBE_MS;
    timer_set(&u->probe, u->probeMs, probe);
}

static void received(struct run *u) {
    struct shell *s = u->shell;
    u->phase = RUN_WAITING;
    if (s->run != u) return; // queued behind one that is being cleaned up
    if (s->child.pid && s->started) run_begin(u);
    else if (!s->child.pid && !shell_launch(s)) {
        struct conn *c = u->conn;
        u->conn = NULL;
        conn_fault(c, "limit", errno, "could not start a shell: %s", strerror(errno));
        run_finish(u);
    }
}

static bool frame(struct conn *c, const struct frame *f) {
    struct run *u = c->owner;
    if (f->tag == TAG_STDIN && u->phase == RUN_RECEIVING) {
        bool fits = u->command.len + f->len <= COMMAND_MAX, text = !memchr(f->data, 0, f->len);
        if (fits && text) {
            text_add(&u->command, f->data, f->len);
            return true;
        }
        u->conn = NULL;
        conn_fault(c, fits ? "invalid" : "limit", 0, fits ? "a command has no NUL" : "the command is too long");
        run_finish(u);
        return true;
    }
    struct json root, op;
    if (f->tag == TAG_JSON && u->phase == RUN_RECEIVING && json_check((const char *)f->data, f->len, &root) &&
        json_get(root, "op", &op) && json_equals(op, "eof"))
        received(u);
    else
        conn_warn(c, "conflict", "nothing more is expected");
    return true;
}

static void drained(struct conn *c) {
    struct run *u = c->owner;
    source_want(&u->shell->out, EPOLLIN);
}

static void gone(struct conn *c) {
    struct run *u = c->owner;
    u->conn = NULL;
    source_want(&u->shell->out, EPOLLIN);
    run_abort(u, "cancelled");
}

static const struct conn_ops ops = {frame, drained, gone};

void run_create(struct shell *s, struct conn *c, struct request *r) {
    struct run *u = calloc(1, sizeof *u);
    struct json command;
    if (!u) {
        conn_fault(c, "limit", ENOMEM, "out of memory");
        return;
    }
    u->shell = s;
    u->timeoutMs = request_int(r, "timeoutMs", 0, 0, INT64_MAX / 1000);
    u->outputBytesMax = (uint64_t)request_int(r, "outputBytesMax", 0, 0, INT64_MAX);
    bool given = json_get(r->root, "command", &command) && !json_is(command, 'n');
    if (given && json_is(command, '"') && text_reserve(&u->command, command.len)) {
        u->command.len = json_decode(command, u->command.data);
        if (memchr(u->command.data, 0, u->command.len)) r->bad = "command";
    } else if (given) {
        r->bad = "command";
    }
    if (r->bad) {
        run_free(u);
        conn_fault(c, "invalid", 0, "bad field: %s", r->bad);
        return;
    }
    u->conn = c;
    u->code = -1;
    u->restarted = s->lost; // it ended between two runs: said once
    s->lost = false;
    c->owner = u;
    c->ops = &ops;
    if (s->run) s->queued = u;
    else s->run = u;
    if (given) received(u);
}
