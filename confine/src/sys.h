/* Kernel interfaces that musl's headers do not have. Values are those of linux/landlock.h, seccomp.h and capability.h. */
#ifndef WARREN_CONFINE_SYS_H
#define WARREN_CONFINE_SYS_H

#include <stdint.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

enum {
    FS_EXECUTE = 1 << 0, FS_WRITE_FILE = 1 << 1, FS_READ_FILE = 1 << 2, FS_READ_DIR = 1 << 3, FS_MAKE_CHAR = 1 << 6,
    FS_MAKE_BLOCK = 1 << 11, FS_TRUNCATE = 1 << 14, FS_IOCTL_DEV = 1 << 15, FS_ALL = (1 << 16) - 1,
    /* What makes sense on something that is not a folder; the kernel refuses the others there. */
    FS_OF_FILE = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
    NET_ALL = 3, SCOPE_ALL = 3,
    LANDLOCK_VERSION = 1, LANDLOCK_PATH_BENEATH = 1, LANDLOCK_ABI_MIN = 6,
};

struct landlock_ruleset {
    uint64_t fs, net, scoped;
};
struct landlock_path {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));

struct bpf_instruction {
    uint16_t code;
    uint8_t yes, no;
    uint32_t k;
};
struct bpf_program {
    uint16_t count;
    struct bpf_instruction *at;
};
enum { BPF_COUNT_MAX = 4096, SECCOMP_FILTER = 2 };

struct cap_head {
    uint32_t version;
    int pid;
};
struct cap_data {
    uint32_t effective, permitted, inheritable;
};
enum { CAP_VERSION_3 = 0x20080522, CAP_COUNT_MAX = 64 };

#endif
