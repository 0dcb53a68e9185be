// Mounts, in earnest, and the flags of those that are there. Where namespaces can be made, in one of our own: the host's stay as they are.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "probe.h"

// 0 when whatever is mounted next is seen by nobody else, or only in the sandbox that should have refused it.
static int alone(void) {
    if (unshare(CLONE_NEWNS) != 0) return is_hosts_root("mnt") ? -1 : 0;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int mounts_type(const struct attempt *a) {
    if (alone() != 0) return ABSENT;
    int result = carried_out(mount("none", "/tmp", a->path, 0, strcmp(a->path, "cgroup") ? NULL : "none,name=probe"));
    return result == ENODEV ? ABSENT : result;
}

static int remounts(const struct attempt *a) {
    if (alone() != 0) return ABSENT;
    return carried_out(mount(NULL, a->path, NULL, MS_REMOUNT | MS_BIND | (unsigned long)a->number, NULL));
}

static int binds(const struct attempt *a) {
    if (alone() != 0) return ABSENT;
    return carried_out(mount(a->path, "/tmp", NULL, MS_BIND | MS_REC, NULL));
}

static int uncovers(const struct attempt *a) {
    if (alone() != 0) return ABSENT;
    return carried_out(umount2(a->path, MNT_DETACH));
}

// OPEN: it is mounted without the flag.
static int lacks(const struct attempt *a) {
    struct statvfs st;
    const char *path = a->path;
    if (path[0] == '$') path = getenv(path + 1);
    if (!path || statvfs(path, &st) != 0) return ABSENT;
    return st.f_flag & (unsigned long)a->number ? EPERM : OPEN;
}

#define TYPE(name) {.id = "mount." name, .make = mounts_type, .path = name}
#define LACKS(name, where, flag) {.id = "flag." name, .make = lacks, .path = where, .number = flag}

static const struct attempt table[] = {
    TYPE("tmpfs"), TYPE("proc"), TYPE("sysfs"), TYPE("cgroup"), TYPE("cgroup2"), TYPE("devtmpfs"), TYPE("devpts"),
    TYPE("debugfs"), TYPE("tracefs"), TYPE("securityfs"), TYPE("bpf"), TYPE("mqueue"), TYPE("ramfs"), TYPE("binfmt_misc"),
    {.id = "mount.bind_root", .make = binds, .path = "/"},
    {.id = "mount.bind_proc_sys", .make = binds, .path = "/proc/sys"},
    {.id = "mount.remount_root", .make = remounts, .path = "/"},
    {.id = "mount.remount_proc_sys_rw", .make = remounts, .path = "/proc/sys"},
    {.id = "mount.remount_tmp_suid", .make = remounts, .path = "/tmp"},
    {.id = "mount.uncover_proc_sys", .make = uncovers, .path = "/proc/sys"},
    {.id = "mount.uncover_kcore", .make = uncovers, .path = "/proc/kcore"},
    {.id = "mount.uncover_dev", .make = uncovers, .path = "/dev"},
    LACKS("proc_nosuid", "/proc", ST_NOSUID), LACKS("proc_nodev", "/proc", ST_NODEV), LACKS("proc_noexec", "/proc", ST_NOEXEC),
    LACKS("proc_sys_ro", "/proc/sys", ST_RDONLY), LACKS("proc_bus_ro", "/proc/bus", ST_RDONLY),
    LACKS("proc_fs_ro", "/proc/fs", ST_RDONLY), LACKS("proc_irq_ro", "/proc/irq", ST_RDONLY),
    LACKS("dev_nosuid", "/dev", ST_NOSUID), LACKS("dev_noexec", "/dev", ST_NOEXEC),
    LACKS("pts_nosuid", "/dev/pts", ST_NOSUID), LACKS("pts_noexec", "/dev/pts", ST_NOEXEC),
    LACKS("shm_nosuid", "/dev/shm", ST_NOSUID), LACKS("shm_nodev", "/dev/shm", ST_NODEV), LACKS("shm_noexec", "/dev/shm", ST_NOEXEC),
    LACKS("tmp_nosuid", "/tmp", ST_NOSUID), LACKS("tmp_nodev", "/tmp", ST_NODEV),
    LACKS("root_nosuid", "/", ST_NOSUID), LACKS("root_nodev", "/", ST_NODEV),
    LACKS("workspace_nosuid", "/workspace", ST_NOSUID), LACKS("workspace_nodev", "/workspace", ST_NODEV),
    LACKS("init_ro", "/run/warren/init", ST_RDONLY), LACKS("init_nosuid", "/run/warren/init", ST_NOSUID),
    LACKS("sudo_ro", "/usr/local/bin/sudo", ST_RDONLY), LACKS("hostname_ro", "/etc/hostname", ST_RDONLY),
    LACKS("hosts_ro", "/etc/hosts", ST_RDONLY), LACKS("resolv_ro", "/etc/resolv.conf", ST_RDONLY),
    LACKS("init_nodev", "/run/warren/init", ST_NODEV),
};
GROUP(mounts, table);
