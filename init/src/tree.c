// Directories and names: list, stat, mkdir, move, remove.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "file.h"
#include "helper.h"
#include "limits.h"

enum { BATCH_BYTES = 64 << 10, DEPTH_MAX = 256 };

static const char *type_of(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFREG: return "file";
    case S_IFDIR: return "dir";
    case S_IFLNK: return "symlink";
    case S_IFIFO: return "fifo";
    case S_IFSOCK: return "socket";
    case S_IFCHR: return "char";
    default: return "block";
    }
}

static void name_text(struct text *t, const char *key, const char *name) {
    size_t n = strlen(name);
    if (utf8_valid(name, n)) {
        text_fmt(t, "\"%s\":", key);
        text_quote(t, name, n);
    } else {
        text_fmt(t, "\"%sBase64\":\"", key);
        text_base64(t, (const uint8_t *)name, n);
        text_add(t, "\"", 1);
    }
}

void entry_text(struct text *t, int dir, const char *leaf, const char *name, const struct stat *st) {
    text_add(t, "{", 1);
    name_text(t, "name", name);
    text_fmt(t, ",\"type\":\"%s\",\"size\":%lld,\"mode\":%u,\"uid\":%u,\"gid\":%u,\"mtimeMs\":%lld", type_of(st->st_mode),
             (long long)st->st_size, (unsigned)(st->st_mode & 07777), (unsigned)st->st_uid, (unsigned)st->st_gid,
             (long long)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000);
    char target[PATH_MAX];
    ssize_t n = S_ISLNK(st->st_mode) ? readlinkat(dir, leaf, target, sizeof target - 1) : -1;
    if (n >= 0) {
        target[n] = 0;
        text_add(t, ",", 1);
        name_text(t, "target", target);
    }
    marks_text(t, dir, leaf, st->st_mode);
    text_add(t, "}", 1);
}

// --- list ---

struct listing {
    struct helper *helper;
    struct text batch;
    int64_t count, limit, depth;
    bool truncated;
    char name[PATH_MAX]; // relative to the start
};

static void send_batch(struct listing *l) {
    if (!l->batch.len) return;
    text_fmt(&l->batch, "]}");
    helper_text(l->helper, &l->batch);
}

static void walk(struct listing *l, int fd, size_t prefix, int64_t depth) {
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return;
    }
    for (struct dirent *e; !l->truncated && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        struct stat st;
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue; // gone meanwhile
        size_t n = strlen(e->d_name);
        if (prefix + n + 2 > sizeof l->name) continue;
        if (l->count == l->limit) {
            l->truncated = true;
            break;
        }
        memcpy(l->name + prefix, e->d_name, n + 1);
        if (l->batch.len) text_add(&l->batch, ",", 1);
        else text_fmt(&l->batch, "{\"ev\":\"entries\",\"entries\":[");
        entry_text(&l->batch, dirfd(dir), e->d_name, l->name, &st);
        l->count++;
        if (l->batch.len > BATCH_BYTES) send_batch(l);
        if (!S_ISDIR(st.st_mode) || depth >= l->depth) continue;
        int below = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0) continue;
        l->name[prefix + n] = '/';
        walk(l, below, prefix + n + 1, depth + 1);
    }
    closedir(dir);
}

static void list_work(struct helper *h) {
    struct listing l = {.helper = h};
    char *path = helper_path(h, "path");
    l.depth = request_int(h->request, "depth", 1, 1, INT64_MAX);
    l.limit = request_int(h->request, "limit", 100000, 0, INT64_MAX);
    if (h->request->bad) helper_fault(h, "invalid", 0, "bad field: %s", h->request->bad);
    marks_shown(h);
    if (l.depth > DEPTH_MAX) l.depth = DEPTH_MAX;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) helper_fault(h, NULL, errno, "%s", strerror(errno));
    walk(&l, fd, 0, 1);
    send_batch(&l);
    helper_json(h, "{\"ev\":\"end\",\"count\":%lld,\"truncated\":%s}", (long long)l.count, l.truncated ? "true" : "false");
}

// --- stat, mkdir, move ---

static void stat_work(struct helper *h) {
    char *path = helper_path(h, "path");
    bool follow = request_bool(h->request, "follow", true);
    marks_shown(h);
    struct stat st;
    if (fstatat(AT_FDCWD, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0) helper_fault(h, NULL, errno, "%s", strerror(errno));
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') path[--n] = 0;
    const char *name = strrchr(path, '/');
    struct text t = {0};
    text_fmt(&t, "{\"ev\":\"ok\",\"entry\":");
    entry_text(&t, AT_FDCWD, path, name[1] ? name + 1 : path, &st);
    text_fmt(&t, "}");
    helper_text(h, &t);
}

static void mkdir_work(struct helper *h) {
    char *path = helper_path(h, "path");
    bool parents = request_bool(h->request, "parents", false);
    int64_t mode = request_int(h->request, "mode", -1, 0, 07777);
    if (h->request->bad) helper_fault(h, "invalid", 0, "bad field: %s", h->request->bad);
    int error = parents ? make_parents(path) : 0;
    if (error) helper_fault(h, NULL, error, "%s", strerror(error));
    if (mkdir(path, mode >= 0 ? (mode_t)mode & 0777 : 0777) != 0) {
        error = errno;
        struct stat st;
        if (error != EEXIST || !parents || stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
            helper_fault(h, NULL, error, "%s", strerror(error));
    } else if (mode >= 0 && chmod(path, (mode_t)mode) != 0) { // past the umask
        helper_fault(h, NULL, errno, "%s", strerror(errno));
    }
    helper_json(h, "{\"ev\":\"ok\"}");
}

static void move_work(struct helper *h) {
    char *from = helper_path(h, "from"), *to = helper_path(h, "to");
    bool overwrite = request_bool(h->request, "overwrite", true);
    if (h->request->bad) helper_fault(h, "invalid", 0, "bad field: %s", h->request->bad);
    long done = overwrite ? rename(from, to) : syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1u /* NOREPLACE */);
    if (done != 0) helper_fault(h, NULL, errno, "%s", strerror(errno));
    helper_json(h, "{\"ev\":\"ok\"}");
}

// --- remove ---

// Descriptor by descriptor, never through a path that somebody could swap for a symlink meanwhile.
static int remove_at(int dir, const char *name, int depth) {
    if (unlinkat(dir, name, 0) == 0) return 0;
    if (errno != EISDIR && errno != EPERM) return errno;
    int unlinkError = errno;
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0) return 0;
    if (errno == ENOTDIR) return unlinkError;
    if (errno != ENOTEMPTY && errno != EEXIST) return errno;
    if (depth > DEPTH_MAX * 4) return ENAMETOOLONG;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno;
    DIR *d = fdopendir(fd);
    if (!d) return close(fd), ENOMEM;
    int error = 0;
    for (struct dirent *e; !error && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) error = remove_at(fd, e->d_name, depth + 1);
    closedir(d);
    if (error && error != ENOENT) return error;
    return unlinkat(dir, name, AT_REMOVEDIR) == 0 ? 0 : errno;
}

static void remove_work(struct helper *h) {
    char *path = helper_path(h, "path");
    bool recursive = request_bool(h->request, "recursive", false);
    if (h->request->bad) helper_fault(h, "invalid", 0, "bad field: %s", h->request->bad);
    int error;
    struct stat st;
    if (lstat(path, &st) != 0) error = errno;
    else if (recursive) error = remove_at(AT_FDCWD, path, 0);
    else error = (S_ISDIR(st.st_mode) ? rmdir(path) : unlink(path)) == 0 ? 0 : errno;
    if (error) helper_fault(h, NULL, error, "%s", strerror(error));
    helper_json(h, "{\"ev\":\"ok\"}");
}

void op_file_list(struct conn *c, struct request *r) { helper_run(c, r, list_work); }
void op_file_stat(struct conn *c, struct request *r) { helper_run(c, r, stat_work); }
void op_file_mkdir(struct conn *c, struct request *r) { helper_run(c, r, mkdir_work); }
void op_file_move(struct conn *c, struct request *r) { helper_run(c, r, move_work); }
void op_file_remove(struct conn *c, struct request *r) { helper_run(c, r, remove_work); }
