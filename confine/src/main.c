#define _GNU_SOURCE
// Starts one confined init and stays beside it. README.md says why; the rest is in files by noun.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine.h"
#include "keeper.h"

static struct plan plan;

static int tell(struct failure f) {
    dprintf(STDOUT_FILENO, "failed %d %s\n", f.error, f.step);
    return 1;
}

static bool read_filter(void) {
    size_t have = 0;
    while (have < plan.filterBytes) {
        ssize_t n = read(STDIN_FILENO, (char *)plan.filter + have, plan.filterBytes - have);
        if (n <= 0) return false;
        have += (size_t)n;
    }
    return true;
}

/* Only its owner may connect, from the first moment on. */
static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return errno = ENAMETOOLONG, -1;
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unlink(path);
    mode_t before = umask(0177);
    bool good = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 128) == 0;
    umask(before);
    return good ? fd : -1;
}

/* What the process must be before it begins. */
static struct failure prepare(void) {
    plan.wasRoot = geteuid() == 0;
    if (!plan.wasRoot && (plan.uid != getuid() || plan.gid != getgid())) return (struct failure){"uid", EPERM};
    struct failure f = landlock_check();
    if (f.step) return f;
    if (!read_filter()) return (struct failure){"filter", EPIPE};
    // First, so that it gets the number that init will know it by.
    plan.listener = listen_at(plan.socket);
    if (plan.listener != LISTENER_FD) return (struct failure){"socket", errno};
    plan.initFile = open(plan.init, O_PATH | O_CLOEXEC);
    if (plan.initFile < 0) return (struct failure){"init", errno};
    return keeper_start() ? f : (struct failure){"keeper", errno};
}

/* The child's last words: nothing, when it became init. */
static struct failure hear(int fd, char *step, size_t room) {
    struct {
        int error;
        char step[32];
    } said;
    ssize_t n = read(fd, &said, sizeof said);
    if (n == 0) return (struct failure){NULL, 0};
    if (n != (ssize_t)sizeof said) return (struct failure){"start", EIO};
    snprintf(step, room, "%.31s", said.step);
    return (struct failure){step, said.error};
}

static void say_last_words(int fd, struct failure f) {
    struct {
        int error;
        char step[32];
    } said = {f.error, ""};
    snprintf(said.step, sizeof said.step, "%s", f.step);
    ssize_t ignored = write(fd, &said, sizeof said);
    (void)ignored;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--abi") == 0) return printf("%ld\n", landlock_abi()), 0;
    if (!plan_read(&plan, argc, argv)) return 2;
    syscall(SYS_close_range, 3u, ~0u, 0u);
    setsid(); // fails when we lead a session already, which is as good
    umask(022);
    if (chdir("/") != 0) return tell((struct failure){"start", errno});
    struct failure f = prepare();
    if (f.step) return tell(f);
    dprintf(STDOUT_FILENO, "listening\n");

    int words[2];
    if (pipe2(words, O_CLOEXEC) != 0) return tell((struct failure){"start", errno});
    pid_t keeper = getpid(), init = fork();
    if (init == 0) {
        say_last_words(words[1], confine_and_exec(&plan, keeper));
        _exit(127);
    }
    if (init < 0) return tell((struct failure){"start", errno});
    close(words[1]);
    char step[32];
    f = hear(words[0], step, sizeof step);
    close(words[0]);
    if (!f.step) {
        f = drop_privileges(&plan);
        if (f.step) kill(init, SIGKILL);
    }
    if (f.step) {
        waitpid(init, NULL, 0);
        unlink(plan.socket);
        return tell(f);
    }
    close(plan.listener);
    close(plan.initFile);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    dprintf(STDOUT_FILENO, "started %d\n", (int)init);
    keeper_run(init, plan.wasRoot);
    return 0;
}
