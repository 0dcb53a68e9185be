// Device nodes. Only those that do nothing when they are opened and closed again: no watchdog, no hibernation.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "probe.h"

static int opens(const struct attempt *a) { return carried_out(open(a->path, (int)a->number | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)); }

// What may be in /dev at all.
static int others(const struct attempt *a) {
    static const char usual[] = " . .. null zero full random urandom tty ptmx pts shm fd stdin stdout stderr core console mqueue ";
    char found[120] = "", name[280];
    DIR *folder = opendir("/dev");
    (void)a;
    if (!folder) return errno;
    for (struct dirent *entry; (entry = readdir(folder));) {
        snprintf(name, sizeof name, " %s ", entry->d_name);
        if (!strstr(usual, name)) snprintf(found + strlen(found), sizeof found - strlen(found), "%.20s ", entry->d_name);
    }
    closedir(folder);
    if (!found[0]) return ENOENT;
    detail("%s", found);
    return OPEN;
}

// To the mode it has: whoever may do that may shut it for everybody else.
static int changes_mode(const struct attempt *a) {
    struct stat st;
    if (stat(a->path, &st) != 0) return errno;
    return carried_out(chmod(a->path, st.st_mode & 07777));
}

static int changes_owner(const struct attempt *a) {
    struct stat st;
    if (stat(a->path, &st) != 0) return errno;
    return carried_out(chown(a->path, st.st_uid, st.st_gid));
}

#define RW(name, at) {.id = "device." name, .make = opens, .path = "/dev/" at, .number = O_RDWR}
#define RO(name, at) {.id = "device." name, .make = opens, .path = "/dev/" at, .number = O_RDONLY}

static const struct attempt table[] = {
    {.id = "device.others", .make = others},
    RW("kvm", "kvm"), RW("fuse", "fuse"), RW("loop_control", "loop-control"), RO("loop0", "loop0"), RW("tun", "net/tun"),
    RW("vsock", "vsock"), RO("vda", "vda"), RO("sda", "sda"), RO("nvme", "nvme0n1"), RO("mem", "mem"), RO("port", "port"),
    RO("kmsg", "kmsg"), RO("tty0", "tty0"), RO("tty1", "tty1"), RO("ttyS0", "ttyS0"), RO("console", "console"), RO("vcs", "vcs"),
    RO("hpet", "hpet"), RW("vhost_net", "vhost-net"), RW("vhost_vsock", "vhost-vsock"), RW("uinput", "uinput"), RO("rtc", "rtc0"),
    RO("nvram", "nvram"), RW("btrfs_control", "btrfs-control"), RW("mapper", "mapper/control"), RO("msr", "cpu/0/msr"),
    RW("autofs", "autofs"), RW("cuse", "cuse"), RW("ppp", "ppp"), RW("userfaultfd", "userfaultfd"), RO("hwrng", "hwrng"),
    RO("vfio", "vfio/vfio"), RO("dri", "dri/card0"), RO("input", "input/event0"), RO("snd", "snd/timer"),
    RW("null", "null"), RW("zero", "zero"), RO("urandom", "urandom"), RW("ptmx", "ptmx"),
    {.id = "device.null_mode", .make = changes_mode, .path = "/dev/null"},
    {.id = "device.null_owner", .make = changes_owner, .path = "/dev/null"},
    {.id = "device.tty_mode", .make = changes_mode, .path = "/dev/tty"},
    {.id = "device.urandom_mode", .make = changes_mode, .path = "/dev/urandom"},
};
GROUP(devices, table);
