#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "caps.h"
#include "reap.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif

const struct launch launch_none = {
    .fds = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1}, .tty = -1, .chown = -1};

static struct rlimit childFiles;

void launch_start(void) {
    getrlimit(RLIMIT_NOFILE, &childFiles);
    struct rlimit own = childFiles;
    own.rlim_cur = own.rlim_max < 8192 ? own.rlim_max : 8192;
    if (own.rlim_cur > childFiles.rlim_cur) setrlimit(RLIMIT_NOFILE, &own);
}

int fd_high(int fd) {
    if (fd < 0 || fd >= LAUNCH_FDS) return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, LAUNCH_FDS);
    int error = errno;
    close(fd);
    errno = error;
    return high;
}

int pipe_high(int fds[2]) {
    if (pipe2(fds, O_CLOEXEC) != 0) return -1;
    fds[0] = fd_high(fds[0]);
    fds[1] = fd_high(fds[1]);
    if (fds[0] >= 0 && fds[1] >= 0) return 0;
    int error = errno;
    if (fds[0] >= 0) close(fds[0]);
    if (fds[1] >= 0) close(fds[1]);
    errno = error;
    return -1;
}

static const char *path_of(char **envp) {
    for (char **e = envp; *e; e++)
        if (strncmp(*e, "PATH=", 5) == 0) return *e + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

// Like execvpe: the most telling error wins, so a file that may not be executed is not "not found".
static int exec_search(const char *name, char **argv, char **envp) {
    if (strchr(name, '/')) return execve(name, argv, envp), errno;
    if (!*name) return ENOENT;
    int error = ENOENT;
    char file[4096];
    for (const char *dir = path_of(envp);;) {
        size_t n = strcspn(dir, ":");
        int len = snprintf(file, sizeof file, "%.*s%s%s", (int)n, dir, n ? "/" : "", name);
        if (len > 0 && (size_t)len < sizeof file) {
            execve(file, argv, envp);
            if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) return errno;
            if (errno == EACCES) error = EACCES;
        }
        if (!dir[n]) return error;
        dir += n + 1;
    }
}

static struct launch_report child(const struct launch *l) {
    setsid();
    if (l->tty >= 0 && ioctl(l->tty, TIOCSCTTY, 0) != 0) return (struct launch_report){LAUNCH_SETUP, errno};
    if (l->chown >= 0) {
        caps_raise();
        if (fchown(l->chown, l->user.uid, l->user.gid) != 0 && caps_can_become())
            return (struct launch_report){LAUNCH_SETUP, errno};
    }
    for (int i = 0; i < LAUNCH_FDS; i++) {
        if (l->fds[i] < 0) close(i);
        else if (dup2(l->fds[i], i) < 0) return (struct launch_report){LAUNCH_SETUP, errno};
    }
    syscall(SYS_close_range, LAUNCH_FDS, ~0u, CLOSE_RANGE_CLOEXEC);
    setrlimit(RLIMIT_NOFILE, &childFiles);
    int error = caps_become(&l->user);
    if (error) return (struct launch_report){LAUNCH_SETUP, error};
    if (chdir(l->cwd) != 0) return (struct launch_report){LAUNCH_CWD, errno};
    error = exec_search(l->program ? l->program : l->argv[0], l->argv, l->envp);
    return (struct launch_report){LAUNCH_EXEC, error};
}

pid_t launch(const struct launch *l, int *status) {
    int report[2];
    if (pipe_high(report) != 0) return -1;
    pid_t pid = reap_fork();
    if (pid == 0) {
        struct launch_report r = child(l);
        ssize_t ignored = write(report[1], &r, sizeof r);
        (void)ignored;
        _exit(127);
    }
    int error = errno;
    close(report[1]);
    if (pid < 0) close(report[0]);
    else *status = report[0];
    errno = error;
    return pid;
}

const char *launch_code(struct launch_report r) {
    if (r.error == EAGAIN || r.error == ENOMEM || r.error == EMFILE || r.error == ENFILE || r.error == ENOSPC)
        return "limit";
    // EINVAL: an id that is not in the sandbox's map.
    if (r.stage == LAUNCH_SETUP) return r.error == EPERM ? "forbidden" : r.error == EINVAL ? "invalid" : "internal";
    if (r.error == ENOENT || (r.stage == LAUNCH_CWD && r.error == ENOTDIR)) return "not_found";
    if (r.stage == LAUNCH_CWD) return r.error == EACCES ? "forbidden" : "invalid";
    return "invalid"; // not executable, no exec format, argument list too long
}

const char *launch_word(struct launch_report r) {
    return r.stage == LAUNCH_CWD ? "working directory" : r.stage == LAUNCH_EXEC ? "program" : "process";
}
