// Who a program inside is: namespaces, ids, capabilities, filter, and what it inherited.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "probe.h"

// The same number is the same namespace.
int shares_with_host(const char *kind) {
    char link[64], mine[64] = "";
    const char *theirs = told(kind);
    if (!theirs) return ABSENT;
    snprintf(link, sizeof link, "/proc/self/ns/%s", kind);
    if (readlink(link, mine, sizeof mine - 1) < 0) return errno;
    return strcmp(mine, theirs) == 0 ? OPEN : EXDEV;
}

int is_hosts_root(const char *kind) { return geteuid() == 0 && shares_with_host(kind) <= 0; }

static int namespace_is_hosts(const struct attempt *a) { return shares_with_host(a->path); }

static int status_field(const char *name, char *value, size_t size) {
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    if (!f) return -1;
    size_t length = strlen(name);
    int found = -1;
    while (found < 0 && fgets(line, sizeof line, f))
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            snprintf(value, size, "%s", line + length + 1 + strspn(line + length + 1, " \t"));
            value[strcspn(value, "\n")] = 0;
            found = 0;
        }
    fclose(f);
    return found;
}

static int capability_set(const struct attempt *a) {
    char value[64];
    if (status_field(a->path, value, sizeof value) != 0) return ABSENT;
    detail("%s", value);
    return strtoull(value, NULL, 16) != 0 ? OPEN : EPERM;
}

static int status_differs(const struct attempt *a) {
    char value[64];
    if (status_field(a->path, value, sizeof value) != 0) return ABSENT;
    detail("%s", value);
    return atol(value) != a->number ? OPEN : EPERM;
}

static int is_root(const struct attempt *a) {
    (void)a;
    return geteuid() == 0 || getuid() == 0 ? OPEN : EPERM;
}

static int has_group_root(const struct attempt *a) {
    gid_t list[64];
    int count = getgroups(64, list);
    (void)a;
    if (getegid() == 0) return OPEN;
    for (int i = 0; i < count; i++)
        if (list[i] == 0) return OPEN;
    return EPERM;
}

// The host's root is one of the ids inside.
static int maps_host_root(const struct attempt *a) {
    unsigned long inside, outside, count;
    FILE *f = fopen(a->path, "r");
    if (!f) return errno;
    int found = EPERM;
    while (fscanf(f, "%lu %lu %lu", &inside, &outside, &count) == 3)
        if (outside == 0 && count > 0) found = OPEN;
    fclose(f);
    return found;
}

static int becomes_root(const struct attempt *a) {
    switch (a->number) {
    case 0: return carried_out(setresuid(0, 0, 0));
    case 1: return carried_out(setresgid(0, 0, 0));
    default: return carried_out(setgroups(1, (gid_t[]){0}));
    }
}

static int takes_capabilities(const struct attempt *a) {
    unsigned header[2] = {0x20080522 /* version 3 */, 0};
    unsigned sets[6] = {~0u, ~0u, 0, 0x1ff, 0x1ff, 0};
    (void)a;
    return carried_out(syscall(SYS_capset, header, sets));
}

static int raises_ambient(const struct attempt *a) {
    (void)a;
    return carried_out(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21 /* SYS_ADMIN */, 0, 0));
}

static int drops_no_new_privs(const struct attempt *a) {
    (void)a;
    return carried_out(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

static int drops_filter(const struct attempt *a) {
    (void)a;
    return carried_out(prctl(PR_SET_SECCOMP, 0, 0, 0, 0));
}

static int inherited(const struct attempt *a) {
    char found[128] = "";
    DIR *folder = opendir("/proc/self/fd");
    (void)a;
    if (!folder) return errno;
    for (struct dirent *entry; (entry = readdir(folder));) {
        int fd = atoi(entry->d_name);
        if (fd <= 2 || fd == dirfd(folder) || fd == answer_by) continue;
        char link[320], target[64] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%s", entry->d_name);
        if (readlink(link, target, sizeof target - 1) < 0) continue;
        snprintf(found + strlen(found), sizeof found - strlen(found), "%d=%.40s ", fd, target);
    }
    closedir(folder);
    if (!found[0]) return ENOENT;
    detail("%s", found);
    return OPEN;
}

static int works_outside(const struct attempt *a) {
    char path[4096];
    struct stat here, there;
    (void)a;
    if (syscall(SYS_getcwd, path, sizeof path) < 0) return OPEN;
    detail("%.100s", path);
    if (path[0] != '/') return OPEN;
    return stat(".", &here) == 0 && stat(path, &there) == 0 && here.st_ino == there.st_ino ? ENOENT : OPEN;
}

// A file or a device as stdin, stdout or stderr that is not the one of that name in here.
static int stdio_outside(const struct attempt *a) {
    (void)a;
    for (int fd = 0; fd <= 2; fd++) {
        char link[32], target[256] = "";
        struct stat there, here;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (fstat(fd, &there) != 0 || S_ISFIFO(there.st_mode) || S_ISSOCK(there.st_mode)) continue;
        if (readlink(link, target, sizeof target - 1) < 0) continue;
        if (stat(target, &here) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino) continue;
        detail("%d is %.100s", fd, target);
        return OPEN;
    }
    return ENOENT;
}

// A file of somebody else that makes its caller somebody else (su, mount) and no-new-privs ignores.
static int setuid_works(const struct attempt *a) {
    struct stat st;
    (void)a;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return EPERM;
    if (stat("/usr/bin/su", &st) != 0 && stat("/bin/su", &st) != 0) return ABSENT;
    return st.st_mode & S_ISUID ? OPEN : ENOENT;
}

static const struct attempt table[] = {
    {.id = "ns.cgroup", .make = namespace_is_hosts, .path = "cgroup"},
    {.id = "ns.ipc", .make = namespace_is_hosts, .path = "ipc"},
    {.id = "ns.mnt", .make = namespace_is_hosts, .path = "mnt"},
    {.id = "ns.net", .make = namespace_is_hosts, .path = "net"},
    {.id = "ns.pid", .make = namespace_is_hosts, .path = "pid"},
    {.id = "ns.user", .make = namespace_is_hosts, .path = "user"},
    {.id = "ns.uts", .make = namespace_is_hosts, .path = "uts"},
    {.id = "id.uid_root", .make = is_root},
    {.id = "id.gid_root", .make = has_group_root},
    {.id = "id.uid_map_host_root", .make = maps_host_root, .path = "/proc/self/uid_map"},
    {.id = "id.gid_map_host_root", .make = maps_host_root, .path = "/proc/self/gid_map"},
    {.id = "id.setuid_0", .make = becomes_root, .number = 0},
    {.id = "id.setgid_0", .make = becomes_root, .number = 1},
    {.id = "id.setgroups_0", .make = becomes_root, .number = 2},
    {.id = "id.setuid_file", .make = setuid_works},
    {.id = "cap.effective", .make = capability_set, .path = "CapEff"},
    {.id = "cap.permitted", .make = capability_set, .path = "CapPrm"},
    {.id = "cap.inheritable", .make = capability_set, .path = "CapInh"},
    {.id = "cap.bounding", .make = capability_set, .path = "CapBnd"},
    {.id = "cap.ambient", .make = capability_set, .path = "CapAmb"},
    {.id = "cap.capset", .make = takes_capabilities},
    {.id = "cap.raise_ambient", .make = raises_ambient},
    {.id = "id.new_privs", .make = status_differs, .path = "NoNewPrivs", .number = 1},
    {.id = "id.unfiltered", .make = status_differs, .path = "Seccomp", .number = 2},
    {.id = "id.drop_no_new_privs", .make = drops_no_new_privs},
    {.id = "id.drop_filter", .make = drops_filter},
    {.id = "fd.inherited", .make = inherited},
    {.id = "fd.cwd", .make = works_outside},
    {.id = "fd.stdio", .make = stdio_outside},
};
GROUP(identity, table);
