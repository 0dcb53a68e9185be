// From a spawn request to a process: its fields, its descriptors, its launch.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach.h"
#include "command.h"
#include "launch.h"
#include "limits.h"
#include "process.h"
#include "pty.h"

enum { ARGV_SHOWN = 256 };

char *argv_json(char **argv) {
    struct text t = {0};
    size_t shown = 0;
    text_add(&t, "[", 1);
    for (char **a = argv; *a && shown < ARGV_SHOWN; a++) {
        size_t n = strlen(*a);
        if (n > ARGV_SHOWN - shown) n = ARGV_SHOWN - shown;
        if (a > argv) text_add(&t, ",", 1);
        text_quote(&t, *a, n);
        shown += n + 1;
    }
    text_add(&t, "]", 2); // with its NUL
    if (t.failed) text_free(&t);
    return t.data;
}

struct wiring { // the child's ends, closed after the fork
    int in, out, err;
};

static bool wire(struct process *p, bool wantsStdin, int cols, int rows, struct launch *l, struct wiring *w) {
    int in[2] = {-1, -1}, out[2], err[2];
    *w = (struct wiring){-1, -1, -1};
    if (p->pty) {
        if (!pty_open(&out[0], &w->out, cols, rows)) return false;
        process_watch_output(&p->out[0], out[0]);
        l->fds[0] = l->fds[1] = l->fds[2] = l->tty = l->chown = w->out;
        return true;
    }
    if (wantsStdin ? pipe_high(in) != 0 : (in[0] = fd_high(open("/dev/null", O_RDONLY | O_CLOEXEC))) < 0) return false;
    w->in = in[0];
    if (wantsStdin) process_watch_input(p, in[1]);
    if (pipe_high(out) != 0) return false;
    w->out = out[1];
    process_watch_output(&p->out[0], out[0]);
    if (pipe_high(err) != 0) return false;
    w->err = err[1];
    process_watch_output(&p->out[1], err[0]);
    l->fds[0] = w->in;
    l->fds[1] = w->out;
    l->fds[2] = w->err;
    return true;
}

static void unwire(struct wiring *w) {
    if (w->in >= 0) close(w->in);
    if (w->out >= 0) close(w->out);
    if (w->err >= 0) close(w->err);
}

static bool begin(struct process *p, struct conn *c, struct command *m, bool wantsStdin, int cols, int rows) {
    struct launch l = launch_none;
    struct wiring w;
    int status = -1;
    l.argv = m->argv;
    l.envp = m->envp;
    l.cwd = m->cwd;
    l.user = p->sweep.user = m->user;
    bool wired = wire(p, wantsStdin, cols, rows, &l, &w);
    pid_t pid = wired ? launch(&l, &status) : -1;
    int error = errno;
    unwire(&w);
    if (pid < 0) {
        struct launch_report r = {LAUNCH_SETUP, error};
        conn_fault(c, launch_code(r), error, "could not start a process: %s", strerror(error));
        return false;
    }
    process_adopt(p, pid, status);
    return true;
}

static uint64_t unix_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static struct process *process_new(struct request *r, bool *wantsStdin, int *cols, int *rows) {
    struct process *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->in.fd = p->status.fd = -1;
    for (int i = 0; i < 2; i++) p->out[i] = (struct stream){.source = {.fd = -1}, .process = p};
    struct json pty;
    struct request size = {.root = {"{}", 2}};
    if (json_get(r->root, "pty", &pty) && !json_is(pty, 'n')) {
        p->pty = true;
        size.root = pty;
        if (!json_is(pty, '{')) r->bad = "pty";
    }
    *cols = (int)request_int(&size, "cols", 80, 1, 65535);
    *rows = (int)request_int(&size, "rows", 24, 1, 65535);
    if (size.bad && !r->bad) r->bad = size.bad;
    *wantsStdin = request_bool(r, "stdin", false);
    p->timeoutMs = request_int(r, "timeoutMs", 0, 0, INT64_MAX / 1000);
    p->graceMs = request_int(r, "graceMs", 0, 0, INT64_MAX / 1000);
    p->outputBytesMax = (uint64_t)request_int(r, "outputBytesMax", 0, 0, INT64_MAX);
    p->detached = request_bool(r, "detached", false);
    p->held = request_bool(r, "hold", false) && p->detached;
    p->ring.max = (size_t)request_int(r, "replayBytes", REPLAY_DEFAULT, 0, REPLAY_MAX);
    p->out[0].tag = p->pty ? TAG_RAW : TAG_STDOUT;
    p->out[1].tag = TAG_STDERR;
    p->startedUs = now_us();
    p->startedUnixMs = unix_ms();
    mark_new(p->mark);
    return p;
}

void op_spawn(struct conn *c, struct request *r) {
    struct command m;
    bool wantsStdin;
    int cols, rows;
    if (process_running() >= PROCESSES_MAX) {
        conn_fault(c, "limit", 0, "too many processes");
        return;
    }
    struct process *p = process_new(r, &wantsStdin, &cols, &rows);
    if (!p || r->bad) {
        conn_fault(c, p ? "invalid" : "limit", 0, p ? "bad field: %s" : "out of memory%s", p ? r->bad : "");
        free(p);
        return;
    }
    if (!command_read(c, r, p->mark, true, &m)) {
        free(p);
        return;
    }
    p->argv = argv_json(m.argv);
    bool good = p->argv && begin(p, c, &m, wantsStdin, cols, rows);
    command_free(&m);
    if (!good) {
        process_free(p);
        return;
    }
    if (!attach_owner(p, c)) process_kill(p, "limit");
}
