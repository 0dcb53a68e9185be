#define _GNU_SOURCE
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool number(const char *text, unsigned long *out) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    *out = strtoul(text, &end, 10);
    return *end == 0;
}

static bool id(const char *text, unsigned *out) {
    unsigned long n;
    /* -1 means "leave it" to setresuid, and 0 is what this program is there to get away from. */
    if (!number(text, &n) || n == 0 || n >= 0xffffffffUL) return false;
    *out = (unsigned)n;
    return true;
}

static bool rule(struct plan *p, const char *path, uint64_t allowed) {
    if (p->ruleCount == RULES_MAX || path[0] != '/') return false;
    p->rules[p->ruleCount++] = (struct rule){path, allowed};
    return true;
}

static bool option(struct plan *p, const char *name, const char *value) {
    if (strcmp(name, "--init") == 0) return p->init = value, true;
    if (strcmp(name, "--socket") == 0) return p->socket = value, true;
    if (strcmp(name, "--workspace") == 0) return p->workspace = value, true;
    if (strcmp(name, "--uid") == 0) return id(value, &p->uid);
    if (strcmp(name, "--gid") == 0) return id(value, &p->gid);
    if (strcmp(name, "--nofile") == 0) return number(value, &p->nofile);
    if (strcmp(name, "--nproc") == 0) return number(value, &p->nproc);
    if (strcmp(name, "--fsize") == 0) return number(value, &p->fsize);
    if (strcmp(name, "--filter-bytes") == 0)
        return number(value, &p->filterBytes) && p->filterBytes <= sizeof p->filter && p->filterBytes % 8 == 0;
    if (strcmp(name, "--cgroup") == 0)
        return p->cgroupCount < CGROUPS_MAX && (p->cgroups[p->cgroupCount++] = value);
    if (strcmp(name, "--run") == 0) return rule(p, value, FS_EXECUTE | FS_READ_FILE | FS_READ_DIR);
    if (strcmp(name, "--read") == 0) return rule(p, value, FS_READ_FILE | FS_READ_DIR);
    if (strcmp(name, "--write") == 0) return rule(p, value, FS_ALL & ~(FS_MAKE_CHAR | FS_MAKE_BLOCK | FS_IOCTL_DEV));
    if (strcmp(name, "--device") == 0)
        return rule(p, value, FS_READ_FILE | FS_WRITE_FILE | FS_READ_DIR | FS_TRUNCATE | FS_IOCTL_DEV);
    return false;
}

bool plan_read(struct plan *p, int argc, char **argv) {
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && option(p, argv[i], argv[i + 1])) continue;
        fprintf(stderr, "warren-confine: bad argument: %s\n", argv[i]);
        return false;
    }
    /* A limit nobody set would be no limit, and an empty filter no filter. */
    if (p->init && p->socket && p->workspace && p->uid && p->gid && p->nofile && p->nproc && p->fsize &&
        p->filterBytes && p->ruleCount)
        return true;
    fprintf(stderr, "warren-confine: an argument is missing\n");
    return false;
}
