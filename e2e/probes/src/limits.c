// Limits of its own that a program lifts, and what it does to PID 1.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "probe.h"

static int raises(const struct attempt *a) {
    struct rlimit limit;
    if (getrlimit((int)a->number, &limit) != 0) return errno;
    if (limit.rlim_max == RLIM_INFINITY) return OPEN;
    limit.rlim_max += 1;
    return carried_out(setrlimit((int)a->number, &limit));
}

// More than the caller says it should have: `told(path)`.
static int exceeds(const char *name, unsigned long long has) {
    const char *most = told(name);
    if (!most) return ABSENT;
    detail("%llu", has);
    return has > strtoull(most, NULL, 10) ? OPEN : EPERM;
}

static int limit_exceeds(const struct attempt *a) {
    struct rlimit limit;
    return getrlimit((int)a->number, &limit) != 0 ? errno : exceeds(a->path, limit.rlim_max);
}

static int setting_exceeds(const struct attempt *a) {
    char path[96];
    unsigned long long value = 0;
    snprintf(path, sizeof path, "/proc/sys/user/%s", a->path);
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%llu", &value) != 1) return ABSENT;
    fclose(f);
    return exceeds(a->path, value);
}

// Bytes, or with a number other than 0 inodes, of a file system that lives in memory.
static int room_exceeds(const struct attempt *a) {
    struct statvfs st;
    char name[32];
    if (statvfs(a->path, &st) != 0) return errno;
    snprintf(name, sizeof name, "%s:%s", a->number ? "inodes" : "bytes", a->path);
    return exceeds(name, a->number ? st.f_files : (unsigned long long)st.f_blocks * st.f_frsize);
}

static int terminals_unlimited(const struct attempt *a) {
    char line[1024];
    FILE *f = fopen("/proc/self/mountinfo", "r");
    int result = OPEN;
    (void)a;
    if (!told("terminals")) return ABSENT;
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, " /dev/pts ") && strstr(line, "max=")) result = exceeds("terminals", strtoull(strstr(line, "max=") + 4, NULL, 10));
    if (f) fclose(f);
    return result;
}

static int counts_last(const struct attempt *a) {
    long value = 0;
    FILE *f = fopen("/proc/self/oom_score_adj", "r");
    (void)a;
    if (!told("sacrifice")) return ABSENT;
    if (!f || fscanf(f, "%ld", &value) != 1) return errno;
    fclose(f);
    return value < atol(told("sacrifice")) ? OPEN : EPERM;
}

static int dumps_core(const struct attempt *a) {
    struct rlimit limit;
    (void)a;
    if (getrlimit(RLIMIT_CORE, &limit) != 0) return errno;
    return limit.rlim_max > 0 ? OPEN : EPERM;
}

static int locks_memory(const struct attempt *a) {
    (void)a;
    void *piece = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return piece == MAP_FAILED ? errno : carried_out(mlock(piece, 1 << 20));
}

static int runs_real_time(const struct attempt *a) {
    struct sched_param param = {.sched_priority = 1};
    (void)a;
    return carried_out(syscall(SYS_sched_setscheduler, 0, SCHED_RR, &param));
}

static int gets_ahead(const struct attempt *a) {
    (void)a;
    return carried_out(setpriority(PRIO_PROCESS, 0, -5));
}

static int reads_disk_first(const struct attempt *a) {
    (void)a;
    return carried_out(syscall(SYS_ioprio_set, 1, 0, 1 << 13));
}

static int survives_oom(const struct attempt *a) {
    (void)a;
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    return fd < 0 ? errno : carried_out(write(fd, "-900", 4));
}

static int traces_init(const struct attempt *a) {
    (void)a;
    if (is_hosts_root("pid")) return ABSENT;
    return carried_out(ptrace(PTRACE_SEIZE, 1, 0, 0));
}

static int reads_init(const struct attempt *a) {
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
    (void)a;
    long got = syscall(SYS_process_vm_readv, 1, &here, 1, &there, 1, 0);
    return got < 0 && errno == EFAULT ? OPEN : carried_out(got);
}

// Only the right to: nothing is sent.
static int signals_init(const struct attempt *a) {
    (void)a;
    return carried_out(kill(1, 0));
}

static int limits_init(const struct attempt *a) {
    struct rlimit now;
    (void)a;
    return carried_out(syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, NULL, &now));
}

static int slows_init(const struct attempt *a) {
    (void)a;
    if (is_hosts_root("pid")) return ABSENT;
    errno = 0;
    int now = getpriority(PRIO_PROCESS, 1);
    return errno ? errno : carried_out(setpriority(PRIO_PROCESS, 1, now));
}

static int pins_init(const struct attempt *a) {
    cpu_set_t set;
    (void)a;
    if (is_hosts_root("pid")) return ABSENT;
    long size = syscall(SYS_sched_getaffinity, 1, sizeof set, &set);
    return size < 0 ? errno : carried_out(syscall(SYS_sched_setaffinity, 1, (size_t)size, &set));
}

static int takes_descriptor(const struct attempt *a) {
    (void)a;
    long fd = syscall(434 /* pidfd_open */, 1, 0);
    return fd < 0 ? errno : carried_out(syscall(438 /* pidfd_getfd */, fd, 0, 0));
}

static const struct attempt table[] = {
    {.id = "limit.core", .make = dumps_core},
    {.id = "limit.open_files", .make = limit_exceeds, .path = "files", .number = RLIMIT_NOFILE},
    {.id = "limit.processes", .make = limit_exceeds, .path = "processes", .number = RLIMIT_NPROC},
    {.id = "limit.memlock", .make = limit_exceeds, .path = "memlock", .number = RLIMIT_MEMLOCK},
    {.id = "limit.user_namespaces", .make = setting_exceeds, .path = "max_user_namespaces"},
    {.id = "limit.inotify_instances", .make = setting_exceeds, .path = "max_inotify_instances"},
    {.id = "limit.inotify_watches", .make = setting_exceeds, .path = "max_inotify_watches"},
    {.id = "limit.dev_bytes", .make = room_exceeds, .path = "/dev"},
    {.id = "limit.dev_inodes", .make = room_exceeds, .path = "/dev", .number = 1},
    {.id = "limit.shm_bytes", .make = room_exceeds, .path = "/dev/shm"},
    {.id = "limit.shm_inodes", .make = room_exceeds, .path = "/dev/shm", .number = 1},
    {.id = "limit.tmp_bytes", .make = room_exceeds, .path = "/tmp"},
    {.id = "limit.tmp_inodes", .make = room_exceeds, .path = "/tmp", .number = 1},
    {.id = "limit.terminals", .make = terminals_unlimited},
    {.id = "limit.sacrifice", .make = counts_last},
    {.id = "limit.raise_open_files", .make = raises, .number = RLIMIT_NOFILE},
    {.id = "limit.raise_processes", .make = raises, .number = RLIMIT_NPROC},
    {.id = "limit.raise_memlock", .make = raises, .number = RLIMIT_MEMLOCK},
    {.id = "limit.raise_core", .make = raises, .number = RLIMIT_CORE},
    {.id = "limit.raise_msgqueue", .make = raises, .number = RLIMIT_MSGQUEUE},
    {.id = "limit.mlock", .make = locks_memory},
    {.id = "limit.real_time", .make = runs_real_time},
    {.id = "limit.nice", .make = gets_ahead},
    {.id = "limit.io_real_time", .make = reads_disk_first},
    {.id = "limit.oom_score", .make = survives_oom},
    {.id = "init.trace", .make = traces_init},
    {.id = "init.read_memory", .make = reads_init},
    {.id = "init.signal", .make = signals_init},
    {.id = "init.prlimit", .make = limits_init},
    {.id = "init.priority", .make = slows_init},
    {.id = "init.affinity", .make = pins_init},
    {.id = "init.take_descriptor", .make = takes_descriptor},
};
GROUP(limits, table);
