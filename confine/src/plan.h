/* What one start needs, read from the command line and from stdin. */
#ifndef WARREN_CONFINE_PLAN_H
#define WARREN_CONFINE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "sys.h"

enum { CGROUPS_MAX = 16, RULES_MAX = 128, LISTENER_FD = 3 };

struct rule {
    const char *path;
    uint64_t allowed;
};

struct plan {
    const char *init, *socket, *workspace;
    uid_t uid;
    gid_t gid;
    unsigned long nofile, nproc, fsize, filterBytes;
    const char *cgroups[CGROUPS_MAX];
    size_t cgroupCount;
    struct rule rules[RULES_MAX];
    size_t ruleCount;
    struct bpf_instruction filter[BPF_COUNT_MAX];
    int listener, initFile;
    bool wasRoot;
};

/* A step that failed, and the kernel's number for why. `step` is NULL when all is well. */
struct failure {
    const char *step;
    int error;
};

bool plan_read(struct plan *p, int argc, char **argv);

#endif
