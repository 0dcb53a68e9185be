// Files that tell about the host or change it. Opened, never written.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "probe.h"

static int writable(const struct attempt *a) {
    int fd = open(a->path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    return carried_out(fd);
}

// The whole of another's ids as ours. A map can be written once; here, somebody has.
static int takes_ids(const struct attempt *a) {
    int fd = open(a->path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? errno : carried_out(write(fd, "0 0 1\n", 6));
}

// A mask is an empty file: nothing to read is nothing learned.
static int tells(const struct attempt *a) {
    char byte;
    int fd = open(a->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return errno;
    ssize_t got = read(fd, &byte, 1);
    if (got < 0) return errno;
    return got == 1 ? OPEN : ENODATA;
}

static int lists(const struct attempt *a) {
    DIR *folder = opendir(a->path);
    if (!folder) return errno;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.') return OPEN;
    return ENODATA;
}

static int resolves(const struct attempt *a) {
    char target[256] = "";
    int result = carried_out(readlink(a->path, target, sizeof target - 1));
    detail("%.100s", target);
    return result;
}

// A file of a name that nobody has, and gone at once.
static int creates(const struct attempt *a) {
    char path[160];
    snprintf(path, sizeof path, "%s/.probe-%d", a->path, getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int result = carried_out(fd);
    if (fd >= 0) unlink(path);
    return result;
}

static int makes_folder(const struct attempt *a) {
    char path[160];
    snprintf(path, sizeof path, "%s/probe-%d", a->path, getpid());
    int result = carried_out(mkdir(path, 0700));
    if (result == OPEN) rmdir(path);
    return result;
}

static int address_told(const struct attempt *a) {
    char line[256];
    FILE *f = fopen(a->path, "r");
    if (!f) return errno;
    int result = ENODATA;
    for (int n = 0; n < 50 && fgets(line, sizeof line, f); n++)
        if (strtoull(line, NULL, 16) != 0) result = OPEN;
    fclose(f);
    return result;
}

#define W(name, at) {.id = "write." name, .make = writable, .path = at}
#define SYSCTL(name, at) {.id = "sysctl." name, .make = writable, .path = "/proc/sys/" at}
#define R(name, at) {.id = "read." name, .make = tells, .path = at}
#define L(name, at) {.id = "list." name, .make = lists, .path = at}

static const struct attempt table[] = {
    SYSCTL("core_pattern", "kernel/core_pattern"), SYSCTL("modprobe", "kernel/modprobe"), SYSCTL("hotplug", "kernel/hotplug"),
    SYSCTL("sysrq", "kernel/sysrq"), SYSCTL("panic", "kernel/panic"), SYSCTL("printk", "kernel/printk"),
    SYSCTL("hostname", "kernel/hostname"), SYSCTL("ns_last_pid", "kernel/ns_last_pid"), SYSCTL("pid_max", "kernel/pid_max"),
    SYSCTL("shmmax", "kernel/shmmax"), SYSCTL("msgmax", "kernel/msgmax"), SYSCTL("randomize_va", "kernel/randomize_va_space"),
    SYSCTL("unprivileged_bpf", "kernel/unprivileged_bpf_disabled"), SYSCTL("dmesg_restrict", "kernel/dmesg_restrict"),
    SYSCTL("overcommit", "vm/overcommit_memory"), SYSCTL("drop_caches", "vm/drop_caches"), SYSCTL("panic_on_oom", "vm/panic_on_oom"),
    SYSCTL("file_max", "fs/file-max"), SYSCTL("suid_dumpable", "fs/suid_dumpable"),
    SYSCTL("protected_symlinks", "fs/protected_symlinks"), SYSCTL("inotify", "fs/inotify/max_user_instances"),
    SYSCTL("binfmt_register", "fs/binfmt_misc/register"), SYSCTL("ip_forward", "net/ipv4/ip_forward"),
    SYSCTL("somaxconn", "net/core/somaxconn"), SYSCTL("unprivileged_port", "net/ipv4/ip_unprivileged_port_start"),
    SYSCTL("max_user_namespaces", "user/max_user_namespaces"), SYSCTL("max_inotify", "user/max_inotify_instances"),
    W("sysrq_trigger", "/proc/sysrq-trigger"), W("irq_affinity", "/proc/irq/default_smp_affinity"),
    {.id = "write.own_uid_map", .make = takes_ids, .path = "/proc/self/uid_map"}, {.id = "write.own_gid_map", .make = takes_ids, .path = "/proc/self/gid_map"}, W("own_setgroups", "/proc/self/setgroups"),
    {.id = "write.own_projid_map", .make = takes_ids, .path = "/proc/self/projid_map"}, W("init_oom", "/proc/1/oom_score_adj"), W("init_mem", "/proc/1/mem"),
    W("init_clear_refs", "/proc/1/clear_refs"), W("init_coredump_filter", "/proc/1/coredump_filter"),
    W("init_uid_map", "/proc/1/uid_map"), W("mtrr", "/proc/mtrr"), W("runtime_by_init_exe", "/proc/1/exe"),
    W("init_program", "/run/warren/init"), W("sudo_program", "/usr/local/bin/sudo"), W("etc_passwd", "/etc/passwd"),
    W("etc_shadow", "/etc/shadow"), W("usr_env", "/usr/bin/env"), W("etc_hosts", "/etc/hosts"), W("etc_resolv", "/etc/resolv.conf"),
    W("uevent_helper", "/sys/kernel/uevent_helper"), W("huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    W("power_state", "/sys/power/state"), W("ksm", "/sys/kernel/mm/ksm/run"), W("profiling", "/sys/kernel/profiling"),
    W("cgroup_release_agent", "/sys/fs/cgroup/memory/release_agent"), W("cgroup_procs_v1", "/sys/fs/cgroup/memory/cgroup.procs"),
    W("cgroup_memory_limit", "/sys/fs/cgroup/memory/memory.soft_limit_in_bytes"),
    W("cgroup_devices", "/sys/fs/cgroup/devices/devices.allow"), W("cgroup_procs_v2", "/sys/fs/cgroup/cgroup.procs"),
    W("cgroup_procs_unified", "/sys/fs/cgroup/unified/cgroup.procs"),
    {.id = "create.cgroup_memory", .make = makes_folder, .path = "/sys/fs/cgroup/memory"},
    {.id = "create.cgroup_pids", .make = makes_folder, .path = "/sys/fs/cgroup/pids"},
    {.id = "create.cgroup_unified", .make = makes_folder, .path = "/sys/fs/cgroup/unified"},
    {.id = "create.in_root", .make = creates, .path = "/"}, {.id = "create.in_etc", .make = creates, .path = "/etc"},
    {.id = "create.in_usr_bin", .make = creates, .path = "/usr/bin"}, {.id = "create.in_dev", .make = creates, .path = "/dev"},
    {.id = "create.in_run", .make = creates, .path = "/run"}, {.id = "create.in_run_warren", .make = creates, .path = "/run/warren"},
    {.id = "create.in_var_lib", .make = creates, .path = "/var/lib"}, {.id = "create.in_root_home", .make = creates, .path = "/root"},
    R("kcore", "/proc/kcore"), R("kmsg", "/proc/kmsg"), R("modules", "/proc/modules"), R("config_gz", "/proc/config.gz"),
    R("bootconfig", "/proc/bootconfig"), R("cmdline", "/proc/cmdline"), R("keys", "/proc/keys"), R("key_users", "/proc/key-users"),
    R("timer_list", "/proc/timer_list"), R("sched_debug", "/proc/sched_debug"), R("interrupts", "/proc/interrupts"),
    R("latency_stats", "/proc/latency_stats"), R("slabinfo", "/proc/slabinfo"), R("pagetypeinfo", "/proc/pagetypeinfo"),
    R("kpagecount", "/proc/kpagecount"), R("kpageflags", "/proc/kpageflags"), R("vmallocinfo", "/proc/vmallocinfo"),
    R("etc_shadow", "/etc/shadow"), R("init_environ", "/proc/1/environ"), R("init_mem", "/proc/1/mem"), R("init_maps", "/proc/1/maps"),
    R("init_auxv", "/proc/1/auxv"), R("init_stack", "/proc/1/stack"), R("init_syscall", "/proc/1/syscall"), R("init_io", "/proc/1/io"),
    {.id = "read.kallsyms", .make = tells, .path = "/proc/kallsyms"},
    {.id = "read.kallsyms_address", .make = address_told, .path = "/proc/kallsyms"},
    {.id = "read.iomem_address", .make = address_told, .path = "/proc/iomem"},
    {.id = "read.init_root", .make = resolves, .path = "/proc/1/root"}, {.id = "read.init_cwd", .make = resolves, .path = "/proc/1/cwd"},
    {.id = "read.init_exe", .make = resolves, .path = "/proc/1/exe"}, {.id = "read.init_ns", .make = resolves, .path = "/proc/1/ns/mnt"},
    {.id = "read.init_fd_0", .make = resolves, .path = "/proc/1/fd/0"}, L("init_fds", "/proc/1/fd"), L("init_map_files", "/proc/1/map_files"),
    L("acpi", "/proc/acpi"), L("scsi", "/proc/scsi"), L("asound", "/proc/asound"), L("root_home", "/root"),
    L("sys", "/sys"), L("sys_firmware", "/sys/firmware"), L("sys_debug", "/sys/kernel/debug"), L("sys_security", "/sys/kernel/security"),
    L("sys_bpf", "/sys/fs/bpf"), L("sys_cgroup", "/sys/fs/cgroup"), L("sys_block", "/sys/block"), L("sys_net", "/sys/class/net"),
    L("sys_module", "/sys/module"), L("sys_pci", "/sys/bus/pci"), L("sys_powercap", "/sys/devices/virtual/powercap"),
};
GROUP(paths, table);
