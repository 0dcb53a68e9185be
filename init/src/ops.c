#include "ops.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach.h"
#include "caps.h"
#include "config.h"
#include "file.h"
#include "process.h"
#include "reap.h"
#include "shell.h"
#include "signals.h"
#include "usage.h"

enum { STOP_POLL_MS = 20 };

static struct timer stopTimer;
static bool stopping, stopKilled;
static uint64_t stopAtMs;

static void op_hello(struct conn *c, struct request *r) {
    (void)r;
    conn_json(c, "{\"ev\":\"ok\",\"version\":1,\"build\":\"%s\",\"pid\":%d,\"profile\":\"%s\",\"abilities\":"
                 "[\"pty\",\"shell\",\"watch\",\"connect\"%s]}",
              BUILD_ID, (int)getpid(), config.dev ? "dev" : "strict", config.dev ? ",\"sudo\"" : "");
    conn_end(c);
}

static void op_hold(struct conn *c, struct request *r) {
    (void)r;
    conn_json(c, "{\"ev\":\"ok\"}");
    c->ops = &conn_idle;
}

static void op_ps(struct conn *c, struct request *r) {
    (void)r;
    struct text t = {0};
    text_fmt(&t, "{\"ev\":\"ok\",\"processes\":[");
    process_list(&t);
    shell_processes(&t);
    text_fmt(&t, "]}");
    conn_text(c, &t);
    conn_end(c);
}

static void op_kill(struct conn *c, struct request *r) {
    pid_t pid = (pid_t)request_int(r, "pid", 0, 1, INT32_MAX);
    char *name = request_string(r, "name");
    int number = name ? signal_number(name) : SIGTERM;
    free(name);
    struct process *p = process_find(pid);
    if (r->bad || !number) {
        conn_fault(c, "invalid", 0, "bad field: %s", r->bad ? r->bad : "name");
    } else if ((p && !p->ended) || shell_has(pid)) {
        signal_group(pid, number);
        conn_json(c, "{\"ev\":\"ok\"}");
        conn_end(c);
    } else {
        conn_fault(c, "not_found", 0, "no such process");
    }
}

// --- stop ---

// As PID 1 everybody else is ours. Anywhere else (tests, the process tier) -1 would reach strangers.
static void signal_everybody(int number) {
    caps_raise();
    if (getpid() == 1) {
        kill(-1, number);
    } else {
        struct proc_list all = proc_all();
        bool changed = true;
        for (int pass = 0; changed && pass < 64; pass++) {
            changed = false;
            for (size_t i = 0; i < all.count; i++)
                for (size_t j = 0; !all.at[i].hit && j < all.count; j++)
                    if (all.at[i].parent == getpid() || (all.at[j].hit && all.at[j].pid == all.at[i].parent))
                        all.at[i].hit = changed = true;
        }
        for (size_t i = 0; i < all.count; i++)
            if (all.at[i].hit) kill(all.at[i].pid, number);
        proc_list_free(&all);
    }
    caps_lower();
}

bool stop_begun(void) { return stopping; }

void stop_check(void) {
    if (stopping && reap_none_left()) loop_quit();
}

static void stop_now(struct timer *t) {
    signal_everybody(SIGKILL);
    // As PID 1 our own end finishes the rest; elsewhere the tree is walked until nobody is left, or a second passed.
    if (getpid() == 1 || (stopKilled && now_ms() > stopAtMs + 1000)) {
        loop_quit();
        return;
    }
    if (!stopKilled) stopAtMs = now_ms();
    stopKilled = true;
    timer_set(t, STOP_POLL_MS, stop_now);
}

void stop_begin(uint64_t graceMs) {
    if (stopping) return;
    stopping = true;
    process_cancel_all();
    signal_everybody(SIGTERM);
    shell_hang_up();
    signal_everybody(SIGCONT); // a stopped process cannot heed the TERM
    timer_set(&stopTimer, graceMs, stop_now);
    reap_all();
    stop_check();
}

static void op_stop(struct conn *c, struct request *r) {
    int64_t graceMs = request_int(r, "graceMs", 1000, 0, 3600000);
    if (r->bad) {
        conn_fault(c, "invalid", 0, "bad field: %s", r->bad);
        return;
    }
    conn_json(c, "{\"ev\":\"ok\"}");
    conn_end(c);
    stop_begin((uint64_t)graceMs);
}

// --- the table ---

static const struct {
    const char *name;
    void (*run)(struct conn *, struct request *);
} table[] = {
    {"hello", op_hello},           {"hold", op_hold},
    {"spawn", op_spawn},           {"attach", op_attach},
    {"ps", op_ps},                 {"kill", op_kill},
    {"shell.open", op_shell_open}, {"shell.run", op_shell_run},
    {"shell.close", op_shell_close}, {"shell.list", op_shell_list},
    {"file.read", op_file_read},   {"file.write", op_file_write},
    {"file.list", op_file_list},   {"file.stat", op_file_stat},
    {"file.mkdir", op_file_mkdir}, {"file.move", op_file_move},
    {"file.remove", op_file_remove}, {"file.watch", op_file_watch},
    {"file.mark", op_file_mark},
    {"connect", op_connect},       {"usage", op_usage},
    {"stop", op_stop},
};

static bool first_frame(struct conn *c, const struct frame *f) {
    struct request r = {0};
    struct json op;
    if (f->tag != TAG_JSON || !json_check((const char *)f->data, f->len, &r.root)) {
        conn_fault(c, "invalid", 0, "the first frame must be a JSON request");
        return true;
    }
    if (!json_get(r.root, "op", &op) || !json_is(op, '"')) {
        conn_fault(c, "invalid", 0, "no op");
        return true;
    }
    if (stopping && !json_equals(op, "hello")) {
        conn_fault(c, "unavailable", 0, "stopping");
        return true;
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (json_equals(op, table[i].name)) {
            table[i].run(c, &r);
            return true;
        }
    conn_fault(c, "unsupported", 0, "unknown op");
    return true;
}

static void gone(struct conn *c) { (void)c; }

const struct conn_ops ops_host = {first_frame, NULL, gone};
