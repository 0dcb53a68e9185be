#include "caps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// musl-gcc has no kernel headers, so the little that is needed of linux/capability.h stands here.
enum {
    CAP_CHOWN = 0, CAP_DAC_OVERRIDE = 1, CAP_FOWNER = 3, CAP_FSETID = 4, CAP_KILL = 5, CAP_SETGID = 6, CAP_SETUID = 7,
    CAP_SETPCAP = 8, CAP_NET_BIND_SERVICE = 10, CAP_SYS_CHROOT = 18, CAP_SETFCAP = 31,
};
struct cap_head {
    uint32_t version;
    int pid;
};
struct cap_data {
    uint32_t effective, permitted, inheritable;
};
enum { CAP_VERSION_3 = 0x20080522 };

#define BIT(cap) (1ull << (cap))

// What dpkg, apt, useradd and su need, and nothing else.
static const uint64_t rootCaps = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) |
                                 BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SETFCAP) | BIT(CAP_KILL) |
                                 BIT(CAP_SYS_CHROOT) | BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SETPCAP);

static uint64_t permitted, bounding;

static int set(uint64_t effective, uint64_t permit) {
    struct cap_head head = {CAP_VERSION_3, 0};
    struct cap_data data[2] = {
        {(uint32_t)effective, (uint32_t)permit, 0},
        {(uint32_t)(effective >> 32), (uint32_t)(permit >> 32), 0},
    };
    return syscall(SYS_capset, &head, data) == 0 ? 0 : errno;
}

static void trim_bounding(uint64_t keep) {
    for (int cap = 0; cap < 64; cap++)
        if ((bounding & BIT(cap)) && !(keep & BIT(cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            bounding &= ~BIT(cap);
}

void caps_start(void) {
    struct cap_head head = {CAP_VERSION_3, 0};
    struct cap_data data[2] = {{0, 0, 0}, {0, 0, 0}};
    if (syscall(SYS_capget, &head, data) == 0) permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted;
    for (int cap = 0; cap < 64; cap++)
        if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1) bounding |= BIT(cap);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (permitted & BIT(CAP_SETPCAP)) {
        set(permitted, permitted);
        trim_bounding(rootCaps);
    }
    permitted &= rootCaps;
    set(0, permitted);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
}

bool caps_can_become(void) { return (permitted & BIT(CAP_SETUID)) && (permitted & BIT(CAP_SETGID)); }

void caps_raise(void) { set(permitted, permitted); }
void caps_lower(void) { set(0, permitted); }

int caps_become(const struct user *u) {
    caps_raise();
    uint64_t keep = u->uid == 0 ? rootCaps & permitted : 0;
    if (permitted & BIT(CAP_SETPCAP)) {
        trim_bounding(keep);
        if (bounding & ~keep) return EPERM;
    }
    if (caps_can_become()) {
        if (syscall(SYS_setgroups, 0, NULL) != 0) return errno;
        if (syscall(SYS_setresgid, u->gid, u->gid, u->gid) != 0) return errno;
        if (syscall(SYS_setresuid, u->uid, u->uid, u->uid) != 0) return errno;
    } else if (geteuid() != u->uid || getegid() != u->gid) {
        return EPERM;
    }
    // Changing the uid may have made us dumpable (fs.suid_dumpable), and until the exec this is still init's memory.
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return set(keep, keep);
}
