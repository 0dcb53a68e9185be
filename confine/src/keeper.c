#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tree.h"

enum { STOP_PASSES = 20 };

static int signals = -1;

bool keeper_start(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return signals >= 0 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

static void kill_all(bool hasOwnUid) {
    if (hasOwnUid) {
        /* Nobody else has this uid: the kernel does it in one step that no fork can slip through. */
        kill(-1, SIGKILL);
        return;
    }
    /* Stopped first, until a look finds nobody new: otherwise a fork bomb grows back while it is being killed. */
    for (int pass = 0, before = -1; pass < STOP_PASSES; pass++) {
        int found = signal_descendants(SIGSTOP);
        if (found == before) break;
        before = found;
    }
    signal_descendants(SIGKILL);
}

void keeper_end(bool hasOwnUid) {
    for (;;) {
        kill_all(hasOwnUid);
        pid_t pid;
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0);
        if (pid < 0 && errno == ECHILD) return;
        nanosleep(&(struct timespec){0, 500000}, NULL);
    }
}

/* True when init is among those that ended. */
static bool reap(pid_t init) {
    bool ended = false;
    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;)
        if (pid == init) ended = true;
    return ended;
}

static void leave_stdio(void) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd < 3; fd++) dup2(null, fd);
    if (null > 2) close(null);
}

void keeper_run(pid_t init, bool hasOwnUid) {
    struct pollfd polled[2] = {{signals, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    bool isOver = false;
    while (!isOver) {
        if (poll(polled, 2, -1) < 0 && errno != EINTR) break;
        struct signalfd_siginfo info;
        while (read(signals, &info, sizeof info) == (ssize_t)sizeof info)
            if (info.ssi_signo == SIGTERM) isOver = true;
        if (reap(init)) isOver = true;
        if (polled[1].fd >= 0 && polled[1].revents) {
            char word;
            /* The parent has written down that we exist; before that, its end is ours. */
            if (read(STDIN_FILENO, &word, 1) != 1) isOver = true;
            polled[1].fd = -1;
            leave_stdio();
        }
    }
    keeper_end(hasOwnUid);
}
