#include "reap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caps.h"

enum { BUCKETS = 64, BATCH = 256 };

static struct child *buckets[BUCKETS];
static uint64_t orphans;
static bool none;
static int oom = -1;
static char oomOwn[16];

static struct child **slot(pid_t pid) { return &buckets[(unsigned)pid % BUCKETS]; }

void reap_start(void) {
    oom = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    ssize_t n = oom >= 0 ? read(oom, oomOwn, sizeof oomOwn - 1) : 0;
    if (n <= 0 && oom >= 0) close(oom), oom = -1;
}

static void oom_set(const char *value) {
    if (oom >= 0 && pwrite(oom, value, strlen(value), 0) < 0) close(oom), oom = -1;
}

pid_t reap_fork(void) {
    // A child of a process that is not dumpable cannot write its own oom_score_adj: it inherits ours instead.
    oom_set("500");
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t all;
        sigemptyset(&all);
        signal(SIGPIPE, SIG_DFL);
        sigprocmask(SIG_SETMASK, &all, NULL);
        return 0;
    }
    int error = errno;
    oom_set(oomOwn);
    errno = error;
    if (pid > 0) none = false;
    return pid;
}

void reap_add(struct child *c) {
    c->next = *slot(c->pid);
    *slot(c->pid) = c;
}

void reap_forget(struct child *c) {
    for (struct child **at = slot(c->pid); *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            return;
        }
}

// Any child can make init its tracer (PTRACE_TRACEME), and a traced stop is reported like an end, whatever was asked
// for. It is let go with the signal it stopped for; one that cannot be let go is killed.
static void untrace(pid_t pid, int number) {
    long deliver = number == SIGTRAP ? 0 : number & 0x7f;
    if (ptrace(PTRACE_DETACH, pid, NULL, (void *)deliver) == 0) return;
    caps_raise();
    kill(pid, SIGKILL);
    caps_lower();
}

void reap_all(void) {
    for (int left = BATCH; left > 0; left--) {
        siginfo_t info = {0};
        struct rusage usage;
        // The system call, not libc's waitid: only it tells the usage of a zombie that is left in place.
        if (syscall(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT, &usage) != 0) {
            none = errno == ECHILD;
            return;
        }
        if (info.si_pid == 0) return;
        if (info.si_code != CLD_EXITED && info.si_code != CLD_KILLED && info.si_code != CLD_DUMPED) {
            untrace(info.si_pid, info.si_status);
            continue;
        }
        struct child *c = *slot(info.si_pid);
        while (c && c->pid != info.si_pid) c = c->next;
        if (c) {
            int status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status & 0x7f;
            reap_forget(c);
            c->ended(c, status, &usage);
        } else {
            orphans++;
        }
        waitpid(info.si_pid, NULL, WNOHANG);
    }
    // More than one batch: the others get a turn first, and a child that stops again and again cannot hold us here.
    kill(getpid(), SIGCHLD);
}

uint64_t reap_orphans(void) { return orphans; }
bool reap_none_left(void) { return none; }
