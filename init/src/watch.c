// Watching a directory: inotify, in a helper that sees exactly what its user may see.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include "file.h"
#include "helper.h"
#include "limits.h"

enum { BUCKETS = 1024, PAIR_MS = 10, DEPTH_MAX = 256 };
enum { MASK = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_EXCL_UNLINK };

struct watched {
    struct watched *next;
    int wd;
    char *path; // relative to the start, "" for the start itself
};

struct watcher {
    struct helper *helper;
    const char *root;
    int fd;
    bool recursive;
    unsigned count;
    struct watched *buckets[BUCKETS];
    // The first half of a rename waits here for its second half.
    uint32_t movedCookie;
    bool movedDir;
    char *movedFrom;
};

static struct watched **slot(struct watcher *w, int wd) {
    struct watched **at = &w->buckets[(unsigned)wd % BUCKETS];
    while (*at && (*at)->wd != wd) at = &(*at)->next;
    return at;
}

static void forget(struct watcher *w, int wd) {
    struct watched **at = slot(w, wd), *one = *at;
    if (!one) return;
    *at = one->next;
    free(one->path);
    free(one);
    w->count--;
}

static char *join(const char *dir, const char *name) {
    size_t n = strlen(dir) + strlen(name) + 2;
    char *s = malloc(n);
    if (!s) _exit(1);
    snprintf(s, n, "%s%s%s", dir, *dir && *name ? "/" : "", name);
    return s;
}

static void path_text(struct text *t, const char *key, const char *path) {
    size_t n = strlen(path);
    if (utf8_valid(path, n)) {
        text_fmt(t, ",\"%s\":", key);
        text_quote(t, path, n);
        return;
    }
    text_fmt(t, ",\"%sBase64\":\"", key);
    text_base64(t, (const uint8_t *)path, n);
    text_add(t, "\"", 1);
}

static void change(struct watcher *w, const char *kind, const char *path, const char *to) {
    struct text t = {0};
    text_fmt(&t, "{\"ev\":\"change\",\"kind\":\"%s\"", kind);
    path_text(&t, "path", path);
    if (to) path_text(&t, "to", to);
    text_add(&t, "}", 1);
    helper_text(w->helper, &t);
}

static void resync(struct watcher *w) { helper_json(w->helper, "{\"ev\":\"resync\"}"); }

// 0, or an errno. The same directory twice is the same watch.
static int add(struct watcher *w, const char *path) {
    char *full = join(w->root, path);
    int wd = inotify_add_watch(w->fd, full, MASK | (*path ? IN_DONT_FOLLOW | IN_ONLYDIR : 0));
    int error = errno;
    free(full);
    if (wd < 0) return error;
    struct watched **at = slot(w, wd);
    if (*at) {
        free((*at)->path);
        (*at)->path = join(path, "");
        return 0;
    }
    if (w->count >= WATCHES_MAX) {
        inotify_rm_watch(w->fd, wd);
        return ENOSPC;
    }
    struct watched *one = malloc(sizeof *one);
    if (!one) _exit(1);
    *one = (struct watched){NULL, wd, join(path, "")};
    *at = one;
    w->count++;
    return 0;
}

// Watches everything below; with `tell`, what is already there was made before we could see it being made.
static int add_below(struct watcher *w, const char *path, bool tell, int depth) {
    int error = add(w, path);
    if (error || depth > DEPTH_MAX) return error;
    char *full = join(w->root, path);
    int fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (*path ? O_NOFOLLOW : 0));
    free(full);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) return 0; // gone, or not ours to read: nothing to see
    for (struct dirent *e; !error && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        struct stat st;
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
        char *below = join(path, e->d_name);
        if (tell) change(w, "create", below, NULL);
        if (S_ISDIR(st.st_mode)) error = add_below(w, below, tell, depth + 1);
        if (error == ENOENT || error == EACCES || error == ENOTDIR) error = 0;
        free(below);
    }
    closedir(dir);
    return error;
}

static bool is_below(const char *path, const char *dir) {
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == 0 || path[n] == '/');
}

// A directory moved: its watches stay valid, their names do not. to NULL: it left our tree.
static void rename_below(struct watcher *w, const char *from, const char *to) {
    for (int b = 0; b < BUCKETS; b++)
        for (struct watched *one = w->buckets[b], *next; one; one = next) {
            next = one->next;
            if (!*one->path || !is_below(one->path, from)) continue;
            if (!to) {
                int wd = one->wd;
                inotify_rm_watch(w->fd, wd);
                forget(w, wd);
                continue;
            }
            const char *rest = one->path + strlen(from);
            char *path = join(to, *rest ? rest + 1 : "");
            free(one->path);
            one->path = path;
        }
}

static void give_up_pair(struct watcher *w) {
    if (!w->movedFrom) return;
    if (w->movedDir) rename_below(w, w->movedFrom, NULL);
    change(w, "remove", w->movedFrom, NULL);
    free(w->movedFrom);
    w->movedFrom = NULL;
}

static void arrived(struct watcher *w, const char *path, bool dir) {
    change(w, "create", path, NULL);
    if (dir && w->recursive && add_below(w, path, true, 0) == ENOSPC) resync(w);
}

static void handle(struct watcher *w, const struct inotify_event *e) {
    if (e->mask & IN_Q_OVERFLOW) {
        give_up_pair(w);
        resync(w);
        if (w->recursive) add_below(w, "", false, 0);
        return;
    }
    struct watched *one = *slot(w, e->wd);
    if (!one) return;
    if (e->mask & IN_IGNORED) {
        forget(w, e->wd);
        return;
    }
    char *path = join(one->path, e->len ? e->name : "");
    bool dir = e->mask & IN_ISDIR;
    bool second = (e->mask & IN_MOVED_TO) && w->movedFrom && w->movedCookie == e->cookie;
    if (!second) give_up_pair(w);
    if (second) {
        change(w, "rename", w->movedFrom, path);
        if (dir) rename_below(w, w->movedFrom, path);
        free(w->movedFrom);
        w->movedFrom = NULL;
    } else if (e->mask & IN_MOVED_FROM) {
        w->movedFrom = join(path, "");
        w->movedCookie = e->cookie;
        w->movedDir = dir;
    } else if (e->mask & (IN_CREATE | IN_MOVED_TO)) {
        arrived(w, path, dir);
    } else if (e->mask & IN_MODIFY) {
        change(w, "write", path, NULL);
    } else if (e->mask & IN_DELETE) {
        change(w, "remove", path, NULL);
    } else if ((e->mask & IN_DELETE_SELF) && !*one->path) {
        change(w, "remove", "", NULL); // directories below are reported by the one above them
    } else if (e->mask & IN_ATTRIB && (e->len || !*one->path)) {
        change(w, "chmod", path, NULL);
    }
    free(path);
}

static void watch_work(struct helper *h) {
    struct watcher w = {.helper = h, .root = helper_path(h, "path")};
    w.recursive = request_bool(h->request, "recursive", false);
    if (h->request->bad) helper_fault(h, "invalid", 0, "bad field: %s", h->request->bad);
    w.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w.fd < 0) helper_fault(h, "limit", errno, "%s", strerror(errno));
    int error = w.recursive ? add_below(&w, "", false, 0) : add(&w, "");
    if (error) helper_fault(h, NULL, error, "%s", error == ENOSPC ? "too many directories" : strerror(error));
    helper_json(h, "{\"ev\":\"ok\"}");
    char *buffer = malloc(STREAM_FRAME_MAX);
    if (!buffer) _exit(1);
    for (;;) {
        struct pollfd p[2] = {{w.fd, POLLIN, 0}, {h->fd, POLLIN | POLLRDHUP, 0}};
        int n = poll(p, 2, w.movedFrom ? PAIR_MS : -1);
        if (n == 0) give_up_pair(&w);
        if (p[1].revents) {
            char waste[512];
            if (recv(h->fd, waste, sizeof waste, 0) <= 0) _exit(0);
        }
        ssize_t got = p[0].revents ? read(w.fd, buffer, STREAM_FRAME_MAX) : 0;
        for (ssize_t at = 0; at < got;) {
            const struct inotify_event *e = (const void *)(buffer + at);
            handle(&w, e);
            at += (ssize_t)(sizeof *e + e->len);
        }
    }
}

void op_file_watch(struct conn *c, struct request *r) { helper_run(c, r, watch_work); }
