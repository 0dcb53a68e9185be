// PID 1 of a sandbox. Reads the command line, opens the sockets, and runs the loop; the rest is in files by noun.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "caps.h"
#include "config.h"
#include "forward.h"
#include "launch.h"
#include "ops.h"
#include "process.h"
#include "reap.h"
#include "sudo.h"
#include "usage.h"

enum { ACCEPT_PAUSE_MS = 50, STOP_GRACE_MS = 1000 };

struct config config = {.uid = 1000, .gid = 1000, .workspace = "/", .sudoSocket = "/run/warren/sudo.sock"};

struct listener {
    struct source source;
    struct timer pause;
    bool sudo;
};
static struct listener hostListener, sudoListener;
static struct source signals;

static void accept_again(struct timer *t) {
    source_want(&owner_of(t, struct listener, pause)->source, EPOLLIN);
}

static void accept_ready(struct source *s, uint32_t events) {
    (void)events;
    struct listener *l = owner_of(s, struct listener, source);
    for (int i = 0; i < 16; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            conn_accept(fd, l->sudo, l->sudo ? &sudo_ops : &ops_host);
            continue;
        }
        if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
        // No descriptor to be had: the queue would wake us at once again, so look away for a moment.
        source_want(s, 0);
        timer_set(&l->pause, ACCEPT_PAUSE_MS, accept_again);
        return;
    }
}

static void signals_ready(struct source *s, uint32_t events) {
    (void)events;
    struct signalfd_siginfo info;
    while (read(s->fd, &info, sizeof info) == (ssize_t)sizeof info) {
        // As PID 1 only our own host may stop us: a sender outside the pid namespace shows as pid 0.
        if (info.ssi_signo == SIGTERM && (getpid() != 1 || info.ssi_pid == 0)) stop_begin(STOP_GRACE_MS);
    }
    reap_all();
    stop_check();
}

static void open_signals(void) {
    sigset_t set;
    for (int n = 1; n < NSIG; n++)
        if (n != SIGKILL && n != SIGSTOP) signal(n, SIG_DFL); // nothing ignored by our parent reaches children
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_SETMASK, &set, NULL);
    source_add(&signals, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), EPOLLIN, signals_ready);
}

static int listen_on(const char *path, mode_t mode) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path) return -1;
    strcpy(a.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(path);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && chmod(path, mode) == 0 && listen(fd, 128) == 0)
        return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static bool listener_open(struct listener *l, int fd, bool sudo) {
    l->sudo = sudo;
    if (fd < 0) return false;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return source_add(&l->source, fd, EPOLLIN, accept_ready);
}

static void open_sudo(void) {
    char dir[108];
    snprintf(dir, sizeof dir, "%s", config.sudoSocket);
    char *slash = strrchr(dir, '/');
    caps_raise();
    if (slash) *slash = 0, mkdir(dir, 0755);
    int fd = listen_on(config.sudoSocket, 0666);
    caps_lower();
    listener_open(&sudoListener, fd, true);
}

static void misused(const char *why) {
    fprintf(stderr, "warren-init: %s\nusage: init --fd N | --listen PATH  --profile dev|strict  --user UID:GID  "
                    "[--workspace DIR] [--sudo-socket PATH] [--forward PORT:PATH] [--subreaper]\n", why);
    exit(2);
}

static int parse(int argc, char **argv, const char **path) {
    int fd = -1;
    bool hasGid, profile = false;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--subreaper") == 0) {
            prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
            continue;
        }
        if (!value) misused("missing value");
        i++;
        if (strcmp(name, "--fd") == 0) fd = atoi(value);
        else if (strcmp(name, "--listen") == 0) *path = value;
        else if (strcmp(name, "--workspace") == 0) config.workspace = value;
        else if (strcmp(name, "--sudo-socket") == 0) config.sudoSocket = value;
        else if (strcmp(name, "--forward") == 0 && forward_add(value)) continue;
        else if (strcmp(name, "--user") == 0 && user_digits(value, &config.uid, &config.gid, &hasGid)) continue;
        else if (strcmp(name, "--profile") == 0 && strcmp(value, "dev") == 0) config.dev = profile = true;
        else if (strcmp(name, "--profile") == 0 && strcmp(value, "strict") == 0) config.dev = false, profile = true;
        else misused(name);
    }
    if (!profile) misused("no --profile");
    if (fd < 0 && !*path) misused("no --fd or --listen");
    return fd;
}

int main(int argc, char **argv) {
    const char *base = strrchr(argv[0], '/');
    if (strcmp(base ? base + 1 : argv[0], "sudo") == 0) return sudo_shim(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "--sudo") == 0) return sudo_shim(argc - 2, argv + 2);

    const char *path = NULL;
    int fd = parse(argc, argv, &path);
    umask(022);
    // Descriptors of whoever started us are not for children: only 0-2 and the socket stay.
    if (fd > 3) syscall(SYS_close_range, 3u, (unsigned)fd - 1, 0u);
    syscall(SYS_close_range, fd >= 3 ? (unsigned)fd + 1 : 3u, ~0u, 0u);
    reap_start();
    caps_start();
    launch_start();
    if (!loop_open()) return perror("warren-init: epoll"), 1;
    open_signals();
    process_start();
    usage_start();
    if (path) fd = listen_on(path, 0600);
    if (!listener_open(&hostListener, fd, false)) return perror("warren-init: listen"), 1;
    if (!forward_start()) return perror("warren-init: forward"), 1;
    if (config.dev) open_sudo();
    if (chdir("/") != 0) return perror("warren-init: chdir"), 1;
    loop_run();
    if (path) unlink(path);
    return 0;
}
