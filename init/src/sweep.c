#include "sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "caps.h"
#include "loop.h"
#include "reap.h"

enum { PASSES = 8, ROUNDS = 100, TRIES = 25, RETRY_MS = 20, HELPER_MS = 1500, ENVIRON_MAX = 256 << 10 };

static struct sweep *queue;   // waiting for a helper
static struct sweep *current; // the helper works for these
static struct child helper;
static pid_t self, me; // init, and whoever asks: init or its helper
static struct timer patience, retry;

void mark_new(char mark[MARK_LEN + 1]) {
    unsigned char raw[MARK_LEN / 2];
    if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw) memset(raw, (int)now_us(), sizeof raw);
    for (size_t i = 0; i < sizeof raw; i++) snprintf(mark + 2 * i, 3, "%02x", raw[i]);
}

void signal_group(pid_t leader, int number) {
    if (leader <= 1) return;
    caps_raise();
    kill(-leader, number);
    caps_lower();
}

static bool spared(const struct sweep *s, const struct proc *p) {
    return p->pid == self || p->pid == me || (s->spareLeader && p->pid == s->leader) ||
           pid_list_has(s->spare, p->pid, p->started);
}

static struct proc *find(struct proc_list *all, pid_t pid) {
    for (size_t i = 0; i < all->count; i++)
        if (all->at[i].pid == pid) return &all->at[i];
    return NULL;
}

// A process started by something that is spared is spared, too.
static bool spared_by_birth(const struct sweep *s, struct proc_list *all, const struct proc *p) {
    if (!s->spare) return false;
    for (int depth = 0; p && p->pid != s->leader && depth < 64; depth++, p = find(all, p->parent))
        if (p->pid == 1 || p->pid == self) return false; // an orphan: its birth is forgotten
        else if (spared(s, p)) return true;
    return false;
}

static bool belongs(const struct sweep *s, struct proc_list *all, const struct proc *p) {
    if (p->pid == s->leader || p->session == s->leader || p->parent == s->leader) return true;
    const struct proc *parent = find(all, p->parent);
    return parent && parent->hit;
}

// Session members and descendants, found by init itself: nobody inside can hinder this part.
static size_t kill_tree(const struct sweep *s) {
    struct proc_list all = proc_all();
    size_t hits = 0;
    bool changed = true;
    for (int pass = 0; changed && pass < 64; pass++) {
        changed = false;
        for (size_t i = 0; i < all.count; i++) {
            struct proc *p = &all.at[i];
            if (p->hit || spared(s, p) || !belongs(s, &all, p) || spared_by_birth(s, &all, p)) continue;
            p->hit = changed = true;
        }
    }
    caps_raise();
    for (size_t i = 0; i < all.count; i++) {
        struct proc *p = &all.at[i];
        if (!p->hit || p->state == 'Z' || p->state == 'X') continue;
        if (kill(p->pid, SIGKILL) == 0) hits++;
    }
    caps_lower();
    proc_list_free(&all);
    return hits;
}

static bool has_mark(pid_t pid, char *buffer, const struct sweep *s) {
    char path[32], wanted[MARK_LEN + 16];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t have = 0;
    for (ssize_t n; have < ENVIRON_MAX && (n = read(fd, buffer + have, ENVIRON_MAX - have)) > 0;) have += (size_t)n;
    close(fd);
    int len = snprintf(wanted, sizeof wanted, "WARREN_OP=%s", s->mark);
    char *at = have ? memmem(buffer, have, wanted, (size_t)len) : NULL;
    return at && (at == buffer || at[-1] == 0);
}

// In the helper, as the user: everything that carries a mark dies; until a round finds nothing.
static void kill_marked(void) {
    char *buffer = malloc(ENVIRON_MAX);
    me = getpid();
    bool found = buffer != NULL;
    for (int round = 0; found && round < ROUNDS; round++) {
        found = false;
        struct proc_list all = proc_all();
        for (size_t i = 0; i < all.count; i++) {
            struct proc *p = &all.at[i];
            if (p->state == 'Z' || p->state == 'X') continue;
            for (struct sweep *s = current; s; s = s->next) {
                if (spared(s, p) || spared_by_birth(s, &all, p) || !has_mark(p->pid, buffer, s)) continue;
                if (kill(p->pid, SIGKILL) == 0) found = true;
                break;
            }
        }
        proc_list_free(&all);
    }
}

static void next(void);

static void helper_ended(struct child *c, int status, const struct rusage *usage) {
    (void)c, (void)status, (void)usage;
    timer_clear(&patience);
    helper.pid = 0;
    while (current) {
        struct sweep *s = current;
        current = s->next;
        s->pending = false;
        s->done(s);
    }
    next();
}

// The helper has the user's uid, so anyone of that uid can stop it: it does not get for ever.
static void helper_late(struct timer *t) {
    (void)t;
    caps_raise();
    kill(helper.pid, SIGKILL);
    caps_lower();
}

static void again(struct timer *t) {
    (void)t;
    next();
}

static void give_up_first(void) {
    struct sweep *s = queue;
    queue = s->next;
    s->pending = false;
    s->done(s);
}

static void next(void) {
    if (helper.pid || !queue) return;
    struct user user = queue->user;
    // One helper for all that wait with this user: a host that drops 500 connections costs one walk, not 500.
    for (struct sweep **at = &queue; *at;) {
        struct sweep *s = *at;
        if (s->user.uid != user.uid || s->user.gid != user.gid) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        s->next = current;
        current = s;
    }
    pid_t pid = reap_fork();
    if (pid == 0) {
        if (caps_become(&user) == 0) kill_marked();
        _exit(0);
    }
    if (pid > 0) {
        helper = (struct child){.pid = pid, .ended = helper_ended};
        reap_add(&helper);
        timer_set(&patience, HELPER_MS, helper_late);
        return;
    }
    // No process to be had (a fork bomb at its limit): what we killed makes room, so try again soon.
    while (current) {
        struct sweep *s = current;
        current = s->next;
        s->next = queue;
        queue = s;
        if (++s->tries < TRIES) continue;
        give_up_first();
    }
    if (queue) timer_set(&retry, RETRY_MS, again);
}

void sweep_start(struct sweep *s) {
    self = me = getpid();
    size_t hits = s->leader > 1; // 0 would be the kernel's own session
    for (int pass = 0; hits && pass < PASSES; pass++) hits = kill_tree(s);
    if (!s->spareLeader) signal_group(s->leader, SIGKILL);
    s->pending = true;
    s->tries = 0;
    s->next = queue;
    queue = s;
    next();
}

void sweep_forget(struct sweep *s) {
    if (!s->pending) return;
    s->pending = false;
    for (struct sweep **at = &queue; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            return;
        }
    for (struct sweep **at = &current; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            return;
        }
}
