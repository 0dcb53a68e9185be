#define _GNU_SOURCE
#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES_MAX = 1 << 16, PASSES_MAX = 256 };

struct process {
    pid_t pid, parent;
    bool isOurs, isDead;
};

static bool read_process(const char *name, struct process *p) {
    char path[300], stat[512];
    if (name[0] < '1' || name[0] > '9') return false;
    snprintf(path, sizeof path, "/proc/%s/stat", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, stat, sizeof stat - 1) : -1;
    if (fd >= 0) close(fd);
    if (n <= 0) return false;
    stat[n] = 0;
    char *after = strrchr(stat, ')'); /* the name before it is whatever the process wants it to be */
    char state;
    int parent;
    if (!after || sscanf(after + 1, " %c %d", &state, &parent) != 2) return false;
    *p = (struct process){atoi(name), parent, parent == getpid(), state == 'Z' || state == 'X'};
    return true;
}

static size_t read_all(struct process *all) {
    size_t count = 0;
    DIR *dir = opendir("/proc");
    for (struct dirent *e; dir && count < PROCESSES_MAX && (e = readdir(dir));)
        if (read_process(e->d_name, &all[count])) count++;
    if (dir) closedir(dir);
    return count;
}

static bool has_parent(const struct process *all, size_t count, pid_t parent) {
    for (size_t i = 0; i < count; i++)
        if (all[i].pid == parent) return all[i].isOurs;
    return false;
}

int signal_descendants(int number) {
    struct process *all = malloc(PROCESSES_MAX * sizeof *all);
    if (!all) return 0;
    size_t count = read_all(all);
    bool changed = true;
    for (int pass = 0; changed && pass < PASSES_MAX; pass++) {
        changed = false;
        for (size_t i = 0; i < count; i++)
            if (!all[i].isOurs && has_parent(all, count, all[i].parent)) all[i].isOurs = changed = true;
    }
    int found = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i].isOurs && !all[i].isDead && kill(all[i].pid, number) == 0) found++;
    free(all);
    return found;
}
