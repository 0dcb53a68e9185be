#define _GNU_SOURCE
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct failure fine;

static struct failure failed(const char *step) { return (struct failure){step, errno}; }

static struct failure wrong(const char *step, int error) { return (struct failure){step, error}; }

long landlock_abi(void) { return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION); }

struct failure landlock_check(void) {
    long abi = landlock_abi();
    if (abi < 0) return failed("landlock");
    return abi >= LANDLOCK_ABI_MIN ? fine : wrong("landlock", EOPNOTSUPP);
}

static struct failure join_cgroup(const char *folder) {
    char path[4200];
    /* v1's `tasks` moves one thread in a tenth of a millisecond where cgroup.procs takes 14; v2 has only the latter. */
    snprintf(path, sizeof path, "%s/tasks", folder);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        snprintf(path, sizeof path, "%s/cgroup.procs", folder);
        fd = open(path, O_WRONLY | O_CLOEXEC);
    }
    if (fd < 0 || write(fd, "0", 1) != 1) return failed("cgroup");
    close(fd);
    return fine;
}

static bool limit(int resource, unsigned long most) {
    struct rlimit now;
    if (getrlimit(resource, &now) != 0) return false;
    /* A hard limit below what was asked for stays: we may have no right to raise it. */
    rlim_t value = now.rlim_max < most ? now.rlim_max : most;
    struct rlimit next = {value, value};
    return setrlimit(resource, &next) == 0;
}

static struct failure set_limits(const struct plan *p) {
    bool good = limit(RLIMIT_CORE, 0) && limit(RLIMIT_NOFILE, p->nofile) && limit(RLIMIT_NPROC, p->nproc) &&
                limit(RLIMIT_FSIZE, p->fsize);
    return good ? fine : failed("limits");
}

/* stdin, stdout and stderr lead nowhere; the listener stays; everything else closes at exec. */
static struct failure set_descriptors(void) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0) return failed("descriptors");
    for (int fd = 0; fd < 3; fd++)
        if (dup2(null, fd) < 0) return failed("descriptors");
    return fcntl(LISTENER_FD, F_SETFD, 0) == 0 ? fine : failed("descriptors");
}

static struct failure drop_bounding(void) {
    for (int cap = 0; cap < CAP_COUNT_MAX; cap++) {
        int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
        if (has == 1 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) return failed("bounding set");
    }
    return fine;
}

static struct failure drop_capabilities(void) {
    struct cap_head head = {CAP_VERSION_3, 0};
    struct cap_data none[2] = {{0, 0, 0}, {0, 0, 0}}, left[2];
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return failed("capabilities");
    if (syscall(SYS_capset, &head, none) != 0 || syscall(SYS_capget, &head, left) != 0) return failed("capabilities");
    return memcmp(none, left, sizeof none) == 0 ? fine : wrong("capabilities", EPERM);
}

struct failure drop_privileges(const struct plan *p) {
    struct failure f = fine;
    if (p->wasRoot) {
        f = drop_bounding();
        if (f.step) return f;
        if (setgroups(0, NULL) != 0) return failed("groups");
        if (setresgid(p->gid, p->gid, p->gid) != 0) return failed("gid");
        if (setresuid(p->uid, p->uid, p->uid) != 0) return failed("uid");
    }
    uid_t uid[3];
    gid_t gid[3];
    if (getresuid(&uid[0], &uid[1], &uid[2]) != 0 || getresgid(&gid[0], &gid[1], &gid[2]) != 0) return failed("uid");
    for (int i = 0; i < 3; i++)
        if (uid[i] != p->uid || gid[i] != p->gid) return wrong("uid", EPERM);
    f = drop_capabilities();
    if (f.step) return f;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("no-new-privs");
    return fine;
}

static struct failure allow(int ruleset, int fd, uint64_t allowed) {
    struct stat st;
    if (fstat(fd, &st) != 0) return failed("landlock");
    struct landlock_path path = {S_ISDIR(st.st_mode) ? allowed : allowed & FS_OF_FILE, fd};
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_PATH_BENEATH, &path, 0) != 0) return failed("landlock");
    return fine;
}

/* Everything Landlock knows is handled, so everything that no rule names is refused: files, TCP, signals, abstract sockets. */
static struct failure make_ruleset(const struct plan *p, int *out) {
    struct landlock_ruleset all = {FS_ALL, NET_ALL, SCOPE_ALL};
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    if (ruleset < 0) return failed("landlock");
    struct failure f = allow(ruleset, p->initFile, FS_EXECUTE | FS_READ_FILE);
    for (size_t i = 0; !f.step && i < p->ruleCount; i++) {
        int fd = open(p->rules[i].path, O_PATH | O_CLOEXEC);
        if (fd < 0) return failed("landlock");
        f = allow(ruleset, fd, p->rules[i].allowed);
        close(fd);
    }
    *out = ruleset;
    return f;
}

static struct failure exec_init(const struct plan *p) {
    char user[32], fd[8];
    snprintf(user, sizeof user, "%u:%u", (unsigned)p->uid, (unsigned)p->gid);
    snprintf(fd, sizeof fd, "%d", LISTENER_FD);
    const char *argv[] = {"warren-init", "--fd", fd, "--profile", "strict", "--user", user,
                          "--workspace", p->workspace, "--subreaper", NULL};
    const char *envp[] = {NULL};
    /* By descriptor: the file was opened before the uid changed, which may not be able to reach it by name. */
    syscall(SYS_execveat, p->initFile, "", argv, envp, AT_EMPTY_PATH);
    return failed("exec");
}

struct failure confine_and_exec(const struct plan *p, pid_t keeper) {
    struct failure f = fine;
    int ruleset;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (size_t i = 0; i < p->cgroupCount; i++)
        if ((f = join_cgroup(p->cgroups[i])).step) return f;
    if (setsid() < 0) return failed("session");
    if ((f = set_limits(p)).step) return f;
    if ((f = make_ruleset(p, &ruleset)).step) return f;
    if ((f = set_descriptors()).step) return f;
    if ((f = drop_privileges(p)).step) return f;
    /* After the uid has changed: the change clears it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != keeper) return wrong("keeper", ESRCH);
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) return failed("landlock");
    close(ruleset);
    struct bpf_program filter = {(uint16_t)(p->filterBytes / sizeof *p->filter),
                                 (struct bpf_instruction *)(uintptr_t)p->filter};
    if (prctl(PR_SET_SECCOMP, SECCOMP_FILTER, &filter, 0, 0) != 0) return failed("seccomp");
    return exec_init(p);
}
