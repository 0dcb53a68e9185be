// System calls by number, with arguments that make no sense: a kernel that is reached complains about those. Where a call has to be
// made in earnest to tell, it changes nothing but its own process.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "probe.h"

#define HIGH (1L << 32)

static long ask(const struct attempt *a) {
    const long *x = a->args;
    return syscall(a->number, x[0], x[1], x[2], x[3], x[4], x[5]);
}

static int nonsense(const struct attempt *a) { return reached(ask(a)); }
static int earnest(const struct attempt *a) { return carried_out(ask(a)); }

static int cloned(const struct attempt *a) {
    long pid = syscall(SYS_clone, a->number | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    return carried_out(pid);
}

static int node(const struct attempt *a) {
    char path[96];
    snprintf(path, sizeof path, "%s/probe-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", getpid());
    long made = a->args[2] ? syscall(SYS_mknodat, AT_FDCWD, path, a->args[0], a->args[1])
                           : syscall(SYS_mknod, path, a->args[0], a->args[1]);
    int result = carried_out(made);
    if (made >= 0) unlink(path);
    return result;
}

// The disk of `told("disk")`, as a node of our own, opened for reading.
static int disk_node(const struct attempt *a) {
    const char *device = told("disk");
    char path[64];
    (void)a;
    if (!device) return ABSENT;
    snprintf(path, sizeof path, "/tmp/probe-%d", getpid());
    if (mknod(path, S_IFBLK | 0600, (dev_t)strtoul(device, NULL, 10)) != 0) return errno;
    int fd = open(path, O_RDONLY);
    int result = carried_out(fd);
    unlink(path);
    return result;
}

#define N(name, ...) {.id = "call." #name, .make = nonsense, .number = SYS_##name, .args = {__VA_ARGS__}}
#define NUMBER(name, n, ...) {.id = "call." name, .make = nonsense, .number = n, .args = {__VA_ARGS__}}
#define E(name, n, ...) {.id = "call." name, .make = earnest, .number = n, .args = {__VA_ARGS__}}
#define CLONE(name, flags) {.id = "call.clone_" name, .make = cloned, .number = flags}
#define UNSHARE(name, flags) E("unshare_" name, SYS_unshare, flags)
#define IOCTL(name, request) {.id = "call.ioctl_" name, .make = nonsense, .number = SYS_ioctl, .args = {-1, request, 0}}

static const struct attempt table[] = {
    N(mount, BAD, BAD, BAD, 0, 0), N(umount2, BAD, 0), N(pivot_root, BAD, BAD), E("chroot", SYS_chroot, (long)"/"),
    NUMBER("open_tree", 428, -1, BAD, 0), NUMBER("move_mount", 429, -1, BAD, -1, BAD, 0), NUMBER("fsopen", 430, BAD, 0),
    NUMBER("fsconfig", 431, -1, 0, 0, 0, 0), NUMBER("fsmount", 432, -1, 0, 0), NUMBER("fspick", 433, -1, BAD, 0),
    NUMBER("mount_setattr", 442, -1, BAD, 0, BAD, 0), NUMBER("open_tree_attr", 467, -1, BAD, 0, BAD, 0),
    NUMBER("statmount", 457, BAD, BAD, 0, 0), NUMBER("listmount", 458, BAD, BAD, 0, 0),
    UNSHARE("user", CLONE_NEWUSER), UNSHARE("mount", CLONE_NEWNS), UNSHARE("pid", CLONE_NEWPID), UNSHARE("net", CLONE_NEWNET),
    UNSHARE("ipc", CLONE_NEWIPC), UNSHARE("uts", CLONE_NEWUTS), UNSHARE("cgroup", CLONE_NEWCGROUP), UNSHARE("time", 0x80),
    UNSHARE("files", CLONE_FILES), N(setns, -1, 0),
    CLONE("user", CLONE_NEWUSER), CLONE("mount", CLONE_NEWNS), CLONE("pid", CLONE_NEWPID), CLONE("net", CLONE_NEWNET),
    CLONE("ipc", CLONE_NEWIPC), CLONE("uts", CLONE_NEWUTS), CLONE("cgroup", CLONE_NEWCGROUP),
    CLONE("user_high_bits", HIGH | CLONE_NEWUSER), NUMBER("clone3", 435, BAD, 0),
    N(sethostname, BAD, 1), N(setdomainname, BAD, 1),
    N(bpf, 99, BAD, 0), N(perf_event_open, BAD, 0, -1, -1, 0), N(userfaultfd, 0x40000001), N(kcmp, 0, 0, 99, 0, 0),
    NUMBER("pidfd_getfd", 438, -1, 0, 0), N(process_vm_readv, 0, 0, 0, 0, 0, 1), N(process_vm_writev, 0, 0, 0, 0, 0, 1),
    NUMBER("process_madvise", 440, -1, 0, 0, 0, 0), NUMBER("process_mrelease", 448, -1, 0),
    N(add_key, BAD, BAD, 0, 0, 0), N(request_key, BAD, BAD, 0, 0), N(keyctl, 0, -3, 0),
    N(name_to_handle_at, -1, BAD, BAD, BAD, 0), N(open_by_handle_at, -1, BAD, 0),
    N(fanotify_init, 0x80000000, 0), N(fanotify_mark, -1, 0x80000000, 0, 0, 0), N(quotactl, 0x7fffff00, BAD, 0, 0),
    NUMBER("quotactl_fd", 443, -1, 0x7fffff00, 0, 0),
    N(init_module, BAD, 0, BAD), N(finit_module, -1, BAD, 0), N(delete_module, BAD, 0),
    N(kexec_load, 0, 0, 0, 0xffffffff), NUMBER("kexec_file_load", SYS_kexec_file_load, -1, -1, 0, BAD, 0xffffffff),
    N(reboot, 0, 0, 0, 0), N(swapon, BAD, 0), N(swapoff, BAD), N(acct, BAD), NUMBER("syslog", SYS_syslog, 10, 0, 0), N(vhangup),
    N(settimeofday, BAD, 0), N(clock_settime, 0, BAD), N(adjtimex, BAD), N(clock_adjtime, 0, BAD),
    NUMBER("io_uring_setup", 425, 0, BAD), NUMBER("io_uring_enter", 426, -1, 0, 0, 0, 0, 0),
    NUMBER("io_uring_register", 427, -1, 0, 0, 0),
    N(io_setup, 0, BAD), N(io_destroy, 0), N(io_submit, 0, 0, 0), N(io_getevents, 0, 0, 0, 0, 0), N(io_cancel, 0, BAD, BAD),
    N(mbind, 0, 0, 99, 0, 0, 0), N(get_mempolicy, 0, 0, 0, 0, 99), N(set_mempolicy, 99, 0, 0), N(migrate_pages, 0, 0, BAD, BAD),
    N(move_pages, 0, 0, 0, 0, 0, 99), NUMBER("set_mempolicy_home_node", 450, 0, 0, 0, 99),
    N(vmsplice, -1, BAD, 0, 0), NUMBER("memfd_secret", 447, 0x40000000), NUMBER("cachestat", 451, -1, BAD, BAD, 0),
    NUMBER("lsm_get_self_attr", 459, 0, BAD, BAD, 0), NUMBER("lsm_set_self_attr", 460, 0, BAD, 0, 0),
    NUMBER("lsm_list_modules", 461, BAD, BAD, 99),
#ifdef __x86_64__
    N(iopl, 0), N(ioperm, 0, 0, 0), N(modify_ldt, 99, 0, 0), N(uselib, BAD), N(ustat, 0, BAD), N(sysfs, 99, 0, 0),
    {.id = "node.mknod_char", .make = node, .args = {S_IFCHR | 0600, 0x103, 0}},
    {.id = "node.mknod_whiteout", .make = node, .args = {S_IFCHR | 0600, 0, 0}},
#endif
    E("personality_exec", SYS_personality, 0x0400000), E("personality_compat", SYS_personality, 0x0200000),
    E("personality_high_bits", SYS_personality, HIGH | 0x0400000),
    IOCTL("tiocsti", 0x5412), IOCTL("tioclinux", 0x541c), IOCTL("tiocsti_high_bits", HIGH | 0x5412),
    IOCTL("btrfs_snap_create", 0x50009401), IOCTL("btrfs_subvol_create", 0x5000940e),
    IOCTL("btrfs_snap_create_v2", 0x50009417), IOCTL("btrfs_subvol_create_v2", 0x50009418),
    IOCTL("btrfs_subvol_setflags", 0x4008941a),
    {.id = "node.mknodat_char", .make = node, .args = {S_IFCHR | 0600, 0x103, 1}},
    {.id = "node.mknodat_block", .make = node, .args = {S_IFBLK | 0600, 0x700, 1}},
    {.id = "node.mknodat_whiteout", .make = node, .args = {S_IFCHR | 0600, 0, 1}},
    {.id = "node.host_disk", .make = disk_node},
    {.id = "node.rename_whiteout", .make = nonsense, .number = SYS_renameat2, .args = {-1, BAD, -1, BAD, 4}},
    E("ptrace_traceme", SYS_ptrace, PTRACE_TRACEME, 0, 0, 0),
};
GROUP(calls, table);
