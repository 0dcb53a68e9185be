#include "proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LIST_FIRST = 64, LIST_MAX = 1 << 16 };

bool proc_read(pid_t pid, struct proc *p) {
    char path[32], stat[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, stat, sizeof stat - 1);
    close(fd);
    if (n <= 0) return false;
    stat[n] = 0;
    char *after = strrchr(stat, ')'); // the name before it is whatever the process wants it to be
    int parent, session;
    unsigned long long started, user, system;
    long rss;
    if (!after || sscanf(after + 1, " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu %*u %ld",
                         &p->state, &parent, &session, &user, &system, &started, &rss) != 7)
        return false;
    p->pid = pid;
    p->parent = parent;
    p->session = session;
    p->started = started;
    p->cpuTicks = user + system;
    p->rssPages = rss > 0 ? (uint64_t)rss : 0;
    p->hit = false;
    return true;
}

static pid_t number(const char *name) {
    long n = 0;
    for (; *name; name++) {
        if (*name < '0' || *name > '9') return 0;
        n = n * 10 + (*name - '0');
    }
    return (pid_t)n;
}

struct proc_list proc_all(void) {
    struct proc_list list = {NULL, 0};
    size_t room = 0;
    DIR *dir = opendir("/proc");
    for (struct dirent *e; dir && (e = readdir(dir)) && list.count < LIST_MAX;) {
        pid_t pid = number(e->d_name);
        if (pid <= 0) continue;
        if (list.count == room) {
            room = room ? room * 2 : LIST_FIRST;
            struct proc *more = realloc(list.at, room * sizeof *more);
            if (!more) break;
            list.at = more;
        }
        if (proc_read(pid, &list.at[list.count])) list.count++;
    }
    if (dir) closedir(dir);
    return list;
}

void proc_list_free(struct proc_list *l) {
    free(l->at);
    *l = (struct proc_list){NULL, 0};
}

static int by_pid(const void *a, const void *b) {
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t ticks_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
    return (uint64_t)t.tv_sec * hz + (uint64_t)t.tv_nsec * hz / 1000000000u;
}

struct pid_list pids_now(void) {
    struct pid_list list = {NULL, 0, ticks_now()};
    size_t room = 0;
    DIR *dir = opendir("/proc");
    for (struct dirent *e; dir && (e = readdir(dir)) && list.count < LIST_MAX;) {
        pid_t pid = number(e->d_name);
        if (pid <= 0) continue;
        if (list.count == room) {
            room = room ? room * 2 : LIST_FIRST;
            pid_t *more = realloc(list.at, room * sizeof *more);
            if (!more) break;
            list.at = more;
        }
        list.at[list.count++] = pid;
    }
    if (dir) closedir(dir);
    if (list.count) qsort(list.at, list.count, sizeof *list.at, by_pid); // /proc is in order, but does not promise it
    return list;
}

void pid_list_free(struct pid_list *l) {
    free(l->at);
    *l = (struct pid_list){NULL, 0, 0};
}

bool pid_list_has(const struct pid_list *l, pid_t pid, uint64_t started) {
    if (!l || l->count == 0 || started > l->ticks) return false; // later: the number was given out again
    return bsearch(&pid, l->at, l->count, sizeof pid, by_pid) != NULL;
}
