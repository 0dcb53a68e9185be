#include "shell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "caps.h"
#include "launch.h"
#include "limits.h"
#include "process.h"
#include "stream.h"

enum { REPORT_MAX = 16 << 10 };

static struct shell *shells;
static unsigned count, made;

static struct shell *find(const char *id) {
    for (struct shell *s = shells; s; s = s->next)
        if (id && strcmp(s->id, id) == 0 && !s->closing) return s;
    return NULL;
}

bool shell_has(pid_t pid) {
    for (struct shell *s = shells; s; s = s->next)
        if (s->child.pid == pid) return true;
    return false;
}

void shell_kill(struct shell *s, int number) {
    if (s->child.pid <= 0) return;
    caps_raise();
    kill(s->child.pid, number);
    caps_lower();
}

void shell_hang_up(void) {
    for (struct shell *s = shells; s; s = s->next) shell_kill(s, SIGHUP);
}

bool shell_say(struct shell *s, const char *line) {
    size_t n = strlen(line);
    return s->driver >= 0 && write(s->driver, line, n) == (ssize_t)n;
}

static void close_fds(struct shell *s) {
    source_close(&s->status);
    source_close(&s->report);
    if (s->out.fd >= 0) drain(source_take(&s->out));
    if (s->driver >= 0) close(s->driver);
    if (s->text >= 0) close(s->text);
    s->driver = s->text = -1;
    text_free(&s->reports);
}

static void shell_free(struct shell *s) {
    for (struct shell **at = &shells; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            count--;
            break;
        }
    close_fds(s);
    timer_clear(&s->abort);
    sweep_forget(&s->sweep);
    command_free(&s->command);
    free(s->path);
    free(s->cwd);
    free(s->argv);
    loop_free(s);
}

// --- what it tells us ---

// "number status directory\n", then a NUL.
static void take_report(struct shell *s, char *report) {
    char *end;
    unsigned long long number = strtoull(report, &end, 10);
    if (*end != ' ') return;
    long code = strtol(end + 1, &end, 10);
    if (*end != ' ' || code < 0 || code > 255) return;
    char *cwd = end + 1;
    size_t n = strlen(cwd);
    if (n > 0 && cwd[n - 1] == '\n') cwd[--n] = 0;
    if (!s->run || s->run->number != number || s->run->phase < RUN_RUNNING) return; // an answer to an old question
    if (cwd[0] == '/' && n <= PATH_BYTES_MAX) {
        char *copy = strdup(cwd);
        if (copy) free(s->cwd), s->cwd = copy;
    }
    run_report(s->run, (int)code);
}

static void report_ready(struct source *source, uint32_t events) {
    (void)events;
    struct shell *s = owner_of(source, struct shell, report);
    if (!text_reserve(&s->reports, PATH_BYTES_MAX + 1)) s->reports.len = 0;
    ssize_t n = read(source->fd, s->reports.data + s->reports.len, s->reports.room - s->reports.len);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        source_close(source);
        return;
    }
    s->reports.len += (size_t)n;
    for (char *nul; s->reports.len && (nul = memchr(s->reports.data, 0, s->reports.len));) {
        size_t used = (size_t)(nul - s->reports.data) + 1;
        struct text rest = {0};
        text_add(&rest, nul + 1, s->reports.len - used);
        struct text one = s->reports;
        s->reports = rest;
        take_report(s, one.data);
        text_free(&one);
        if (s->report.fd < 0) return;
    }
    if (s->reports.len > REPORT_MAX) text_free(&s->reports);
    if (!s->reports.len) text_free(&s->reports);
}

static void out_ready(struct source *source, uint32_t events) {
    (void)events;
    if (source->events & EPOLLIN) run_output(owner_of(source, struct shell, out));
}

// --- its life ---

static void check_closed(struct shell *s) {
    if (!s->closing || s->child.pid || s->sweep.pending) return;
    if (s->closer) {
        conn_json(s->closer, "{\"ev\":\"ok\"}");
        conn_end(s->closer);
    }
    shell_free(s);
}

static void swept(struct sweep *w) {
    struct shell *s = owner_of(w, struct shell, sweep);
    if (s->closing) check_closed(s);
    else if (s->run) run_swept(s->run);
}

static void ended(struct child *c, int status, const struct rusage *usage) {
    (void)usage;
    struct shell *s = owner_of(c, struct shell, child);
    if (s->status.fd >= 0) {
        s->status.ready(&s->status, 0);
        if (!s->started) return; // a failed start: answered or tried again already
    }
    s->child.pid = 0;
    s->lastCode = 0;
    s->started = false;
    if (s->closing) {
        check_closed(s);
        return;
    }
    if (s->run) run_shell_ended(s->run, status);
    else {
        s->lost = true;
        close_fds(s);
    }
}

void shell_idle(struct shell *s) {
    if (!s->child.pid) close_fds(s);
    else if (ftruncate(s->text, 0) != 0) shell_kill(s, SIGKILL); // gives the command's memory back
    if (process_running() == 0) scratch_release();
    if (s->closing || !s->queued) return;
    s->run = s->queued;
    s->queued = NULL;
    if (s->run->phase != RUN_WAITING) return;
    if (s->child.pid) run_begin(s->run);
    else if (!shell_launch(s)) run_abort(s->run, "cancelled");
}

static void greet(struct shell *s) {
    bool bash = strstr(s->path, "bash") != NULL;
    shell_say(s, bash ? "PS1= PS2=; unset HISTFILE MAILCHECK; set +o history +H; trap 'builtin kill -INT $$' PROF\n"
                      : "PS1= PS2=; trap 'kill -INT $$' PROF\n");
}

static void fail(struct shell *s, struct launch_report r) {
    if (s->opener) {
        conn_fault(s->opener, launch_code(r), r.error, "%s: %s", launch_word(r), strerror(r.error));
        s->opener = NULL;
        s->closing = true; // freed when the child is reaped
    } else if (s->run) {
        struct conn *c = s->run->conn;
        s->run->conn = NULL;
        if (c) conn_fault(c, launch_code(r), r.error, "%s: %s", launch_word(r), strerror(r.error));
        run_finish(s->run);
    }
}

static void status_ready(struct source *source, uint32_t events) {
    (void)events;
    struct shell *s = owner_of(source, struct shell, status);
    struct launch_report r;
    ssize_t n = read(source->fd, &r, sizeof r);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    source_close(source);
    if (n == (ssize_t)sizeof r) {
        // The last directory may be gone: then the first one, then the root.
        bool again = r.stage == LAUNCH_CWD && !s->opener && s->cwdTry < 2;
        reap_forget(&s->child);
        s->child.pid = 0; // reaped as an orphan
        if (again) s->cwdTry++;
        if (!again || !shell_launch(s)) fail(s, r);
        if (s->closing) check_closed(s);
        return;
    }
    s->started = true;
    s->cwdTry = 0;
    greet(s);
    if (s->opener) {
        struct text t = {0};
        text_fmt(&t, "{\"ev\":\"ok\",\"shell\":\"%s\",\"pid\":%d,\"path\":", s->id, (int)s->child.pid);
        text_quote(&t, s->path, strlen(s->path));
        text_add(&t, "}", 1);
        struct conn *c = s->opener;
        s->opener = NULL;
        conn_text(c, &t);
        conn_end(c);
    }
    if (s->run && s->run->phase == RUN_WAITING) run_begin(s->run);
}

struct ends {
    int driver[2], out[2], report[2], null, text;
};

static bool open_ends(struct ends *e) {
    *e = (struct ends){{-1, -1}, {-1, -1}, {-1, -1}, -1, -1};
    return pipe_high(e->driver) == 0 && pipe_high(e->out) == 0 && pipe_high(e->report) == 0 &&
           (e->null = fd_high(open("/dev/null", O_RDWR | O_CLOEXEC))) >= 0 &&
           (e->text = fd_high(memfd_create("command", MFD_CLOEXEC))) >= 0;
}

static void close_all(int *fds, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0) close(fds[i]);
}

bool shell_launch(struct shell *s) {
    struct ends e;
    struct launch l = launch_none;
    const char *name = strrchr(s->path, '/') + 1;
    bool bash = strstr(name, "bash") != NULL;
    char *forBash[] = {(char *)(uintptr_t)name, "--norc", "--noprofile", "--noediting", "-i", "-s", NULL};
    char *forOthers[] = {(char *)(uintptr_t)name, "-i", "-s", NULL};
    close_fds(s);
    if (!open_ends(&e)) goto failed;
    l.program = s->path;
    l.argv = bash ? forBash : forOthers;
    l.envp = s->command.envp;
    l.cwd = s->cwdTry == 0 ? s->cwd : s->cwdTry == 1 ? s->command.cwd : "/";
    l.user = s->command.user;
    l.fds[0] = e.driver[0];
    l.fds[1] = l.fds[2] = e.null;
    l.fds[6] = e.text;
    l.fds[7] = e.out[1];
    l.fds[9] = e.report[1];
    int status;
    pid_t pid = launch(&l, &status);
    if (pid < 0) goto failed;
    close(e.driver[0]);
    close(e.out[1]);
    close(e.report[1]);
    close(e.null);
    s->child = (struct child){.pid = pid, .ended = ended};
    reap_add(&s->child);
    s->driver = e.driver[1];
    s->text = e.text;
    fcntl(s->driver, F_SETFL, O_NONBLOCK);
    fcntl(e.out[0], F_SETFL, O_NONBLOCK);
    fcntl(e.report[0], F_SETFL, O_NONBLOCK);
    fcntl(status, F_SETFL, O_NONBLOCK);
    source_add(&s->out, e.out[0], EPOLLIN, out_ready);
    source_add(&s->report, e.report[0], EPOLLIN, report_ready);
    source_add(&s->status, status, EPOLLIN, status_ready);
    return true;
failed:;
    int error = errno;
    close_all(e.driver, 2), close_all(e.out, 2), close_all(e.report, 2), close_all(&e.null, 1), close_all(&e.text, 1);
    errno = error;
    return false;
}

// --- operations ---

static char *choose(struct request *r) {
    char *asked = request_string(r, "shell");
    if (asked && asked[0] != '/' && !r->bad) r->bad = "shell";
    if (asked || r->bad) return asked;
    static const char *const usual[] = {"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"};
    for (size_t i = 0; i < 3; i++)
        if (access(usual[i], X_OK) == 0) return strdup(usual[i]);
    return strdup("/bin/sh");
}

static void opener_gone(struct conn *c) {
    struct shell *s = c->owner;
    s->opener = NULL; // nobody will know its name: close it again
    s->closing = true;
    s->sweep.leader = s->child.pid;
    sweep_start(&s->sweep);
}

static bool no_more(struct conn *c, const struct frame *f) {
    (void)f;
    conn_warn(c, "conflict", "nothing more is expected");
    return true;
}

static void closer_gone(struct conn *c) { ((struct shell *)c->owner)->closer = NULL; }

static const struct conn_ops openerOps = {no_more, NULL, opener_gone};
static const struct conn_ops closerOps = {no_more, NULL, closer_gone};

static bool add_size(struct shell *s, const char *name, int64_t value) {
    if (value == 0) return true;
    char digits[24];
    struct list env = {s->command.envp, 0, 0};
    while (env.at[env.count]) env.count++;
    env.room = env.count + 1;
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    bool good = list_default(&env, name, digits);
    s->command.envp = env.at;
    return good;
}

void op_shell_open(struct conn *c, struct request *r) {
    if (count >= SHELLS_MAX) {
        conn_fault(c, "limit", 0, "too many shells");
        return;
    }
    struct shell *s = calloc(1, sizeof *s);
    if (!s) {
        conn_fault(c, "limit", ENOMEM, "out of memory");
        return;
    }
    s->status.fd = s->out.fd = s->report.fd = s->driver = s->text = -1;
    mark_new(s->mark);
    int64_t cols = request_int(r, "cols", 0, 1, 65535), rows = request_int(r, "rows", 0, 1, 65535);
    s->path = choose(r);
    if (r->bad || !s->path) {
        conn_fault(c, "invalid", 0, "bad field: %s", r->bad ? r->bad : "shell");
        shell_free(s);
        return;
    }
    if (!command_read(c, r, s->mark, false, &s->command)) {
        shell_free(s);
        return;
    }
    s->sweep = (struct sweep){.mark = s->mark, .user = s->command.user, .done = swept};
    char *shown[] = {s->path, NULL};
    s->argv = argv_json(shown);
    s->cwd = strdup(s->command.cwd);
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    s->startedUnixMs = (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
    if (!s->cwd || !s->argv || !add_size(s, "COLUMNS", cols) || !add_size(s, "LINES", rows) || !shell_launch(s)) {
        conn_fault(c, "limit", errno, "could not start a shell: %s", strerror(errno));
        shell_free(s);
        return;
    }
    snprintf(s->id, sizeof s->id, "sh%u", ++made);
    s->next = shells;
    shells = s;
    count++;
    s->opener = c;
    c->owner = s;
    c->ops = &openerOps;
}

void op_shell_run(struct conn *c, struct request *r) {
    char *id = request_string(r, "shell");
    struct shell *s = find(id);
    free(id);
    if (!s || s->opener) conn_fault(c, "not_found", 0, "no such shell");
    else if (s->queued || (s->run && s->run->conn)) conn_fault(c, "conflict", 0, "the shell is busy");
    else run_create(s, c, r);
}

void op_shell_close(struct conn *c, struct request *r) {
    char *id = request_string(r, "shell");
    struct shell *s = find(id);
    free(id);
    if (!s || s->opener) {
        conn_fault(c, "not_found", 0, "no such shell");
        return;
    }
    s->closing = true;
    s->closer = c;
    c->owner = s;
    c->ops = &closerOps;
    timer_clear(&s->abort);
    sweep_forget(&s->sweep);
    struct run *runs[] = {s->run, s->queued};
    for (int i = 0; i < 2; i++)
        if (runs[i]) runs[i]->reason = "cancelled", runs[i]->code = -1, run_finish(runs[i]);
    s->sweep.spare = NULL;
    s->sweep.spareLeader = false;
    s->sweep.leader = s->child.pid;
    sweep_start(&s->sweep);
}

void op_shell_list(struct conn *c, struct request *r) {
    (void)r;
    struct text t = {0};
    text_fmt(&t, "{\"ev\":\"ok\",\"shells\":[");
    bool first = true;
    for (struct shell *s = shells; s; s = s->next) {
        if (s->closing || s->opener) continue;
        text_fmt(&t, "%s{\"shell\":\"%s\",\"pid\":%d,\"path\":", first ? "" : ",", s->id, (int)s->child.pid);
        text_quote(&t, s->path, strlen(s->path));
        text_fmt(&t, ",\"cwd\":");
        text_quote(&t, s->cwd, strlen(s->cwd));
        text_fmt(&t, ",\"busy\":%s}", s->run ? "true" : "false");
        first = false;
    }
    text_fmt(&t, "]}");
    conn_text(c, &t);
    conn_end(c);
}

void shell_processes(struct text *t) {
    for (struct shell *s = shells; s; s = s->next) {
        if (!s->child.pid || !s->started || s->closing) continue;
        text_fmt(t, "%s{\"pid\":%d,\"argv\":%s,\"user\":%u,\"detached\":false,\"shell\":\"%s\",\"running\":true,\"startedMs\":%llu,\"exit\":null}",
                 t->data[t->len - 1] == '[' ? "" : ",", (int)s->child.pid, s->argv, (unsigned)s->command.user.uid, s->id,
                 (unsigned long long)s->startedUnixMs);
    }
}
