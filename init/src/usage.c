#include "usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "config.h"
#include "proc.h"
#include "process.h"
#include "reap.h"

static uint64_t bornMs;

void usage_start(void) { bornMs = now_ms(); }


// The number after `key` in a small file (key "": the first number); false when there is none.
static bool number_in(const char *path, const char *key, uint64_t *out) {
    char text[1024];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return false;
    text[n] = 0;
    char *at = strstr(text, key);
    return at && sscanf(at + strlen(key), " %llu", (unsigned long long *)out) == 1;
}

// The cgroup knows everything; without one the sum over /proc comes close (what ended and was not reaped by us is missing).
static void memory_and_cpu(const struct proc_list *all, uint64_t *memory, uint64_t *cpuUs) {
    uint64_t pages = 0, ticks = 0, ns;
    for (size_t i = 0; i < all->count; i++) pages += all->at[i].rssPages, ticks += all->at[i].cpuTicks;
    if (!number_in("/sys/fs/cgroup/memory.current", "", memory) &&
        !number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes", "", memory))
        *memory = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    if (number_in("/sys/fs/cgroup/cpu.stat", "usage_usec", cpuUs)) return;
    if (number_in("/sys/fs/cgroup/cpuacct/cpuacct.usage", "", &ns)) {
        *cpuUs = ns / 1000;
        return;
    }
    struct rusage ended;
    uint64_t unused;
    getrusage(RUSAGE_CHILDREN, &ended);
    usage_of(&ended, cpuUs, &unused);
    *cpuUs += ticks * 1000000u / (uint64_t)sysconf(_SC_CLK_TCK);
}

void op_usage(struct conn *c, struct request *r) {
    (void)r;
    struct proc_list all = proc_all();
    uint64_t memory = 0, cpuUs = 0;
    struct statvfs disk = {0};
    if (statvfs(config.workspace, &disk) != 0) statvfs("/", &disk);
    memory_and_cpu(&all, &memory, &cpuUs);
    conn_json(c, "{\"ev\":\"ok\",\"processes\":%zu,\"zombiesReaped\":%llu,\"memoryBytes\":%llu,\"cpuUs\":%llu,\"uptimeMs\":%llu,"
                 "\"disk\":{\"totalBytes\":%llu,\"freeBytes\":%llu}}",
              all.count, (unsigned long long)reap_orphans(), (unsigned long long)memory, (unsigned long long)cpuUs,
              (unsigned long long)(now_ms() - bornMs), (unsigned long long)disk.f_blocks * disk.f_frsize,
              (unsigned long long)disk.f_bavail * disk.f_frsize);
    proc_list_free(&all);
    conn_end(c);
}
