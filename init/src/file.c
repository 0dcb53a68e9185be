#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "helper.h"
#include "limits.h"
#include "user.h"

// --- read ---

static void read_work(struct helper *h) {
    char *path = helper_path(h, "path");
    int64_t offset = request_int(h->request, "offset", 0, 0, INT64_MAX);
    int64_t left = request_int(h->request, "limit", INT64_MAX, 0, INT64_MAX);
    if (h->request->bad) helper_fault(h, "invalid", 0, "bad field: %s", h->request->bad);
    // Not blocking: a FIFO without a writer would otherwise hold us for ever.
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) helper_fault(h, errno == ENXIO ? "invalid" : NULL, errno, "%s", strerror(errno));
    struct stat st;
    if (fstat(fd, &st) != 0) helper_fault(h, NULL, errno, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode)) helper_fault(h, "invalid", S_ISDIR(st.st_mode) ? EISDIR : 0, "not a regular file");
    struct text t = {0};
    const char *slash = strrchr(path, '/');
    text_fmt(&t, "{\"ev\":\"ok\",\"entry\":");
    entry_text(&t, AT_FDCWD, path, slash[1] ? slash + 1 : path, &st);
    text_fmt(&t, "}");
    helper_text(h, &t);
    enum { PIECE = STREAM_FRAME_MAX - 1 };
    char *piece = malloc(PIECE);
    uint64_t sent = 0;
    while (piece && left > 0) {
        ssize_t n = pread(fd, piece, left < PIECE ? (size_t)left : PIECE, offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) helper_fault(h, NULL, errno, "%s", strerror(errno));
        if (n == 0) break;
        helper_send(h, TAG_RAW, piece, (size_t)n);
        offset += n;
        left -= n;
        sent += (uint64_t)n;
    }
    helper_json(h, "{\"ev\":\"end\",\"bytes\":%llu}", (unsigned long long)sent);
}

// --- write ---

static char temporary[PATH_MAX + 64];

static void remove_temporary(void) {
    if (temporary[0]) unlink(temporary);
}

int make_parents(const char *path) {
    char dir[PATH_MAX];
    if (strlen(path) >= sizeof dir) return ENAMETOOLONG;
    strcpy(dir, path);
    for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
            int why = errno;
            struct stat st; // an existing directory on a read-only or forbidden parent is fine
            if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode)) return why;
        }
        *slash = '/';
    }
    return 0;
}

struct target {
    char *path;
    int64_t mode; // -1: not asked for
    int64_t bytesMax;
    uid_t uid;
    gid_t gid;
    bool owned, atomic, append, existed;
    struct stat old;
};

// A symlink is followed by hand, so that the file it points to is replaced and not the link.
static char *resolve(struct helper *h, char *path) {
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISLNK(st.st_mode)) return path;
    char *real = realpath(path, NULL);
    if (real) return real;
    if (errno != ENOENT) helper_fault(h, NULL, errno, "%s", strerror(errno));
    char target[PATH_MAX]; // dangling: create what it points to
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0) helper_fault(h, NULL, errno, "%s", strerror(errno));
    target[n] = 0;
    char *joined = malloc(2 * PATH_MAX);
    int dir = (int)(strrchr(path, '/') - path) + 1;
    if (!joined || snprintf(joined, 2 * PATH_MAX, "%.*s%s", target[0] == '/' ? 0 : dir, path, target) > PATH_BYTES_MAX)
        helper_fault(h, "invalid", ENAMETOOLONG, "link target is too long");
    if (lstat(joined, &st) == 0 && S_ISLNK(st.st_mode)) helper_fault(h, "invalid", ELOOP, "dangling chain of links");
    return joined;
}

static int open_target(struct helper *h, struct target *t) {
    int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    mode_t fresh = t->mode >= 0 ? (mode_t)t->mode & 0777 : 0666;
    if (!t->atomic) {
        int fd = open(t->path, flags | O_CREAT | (t->append ? O_APPEND : O_TRUNC), fresh);
        if (fd < 0) helper_fault(h, errno == ENXIO ? "invalid" : NULL, errno, "%s", strerror(errno));
        struct stat st;
        if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) helper_fault(h, "invalid", 0, "not a regular file");
        return fd;
    }
    t->existed = stat(t->path, &t->old) == 0;
    if (t->existed && S_ISDIR(t->old.st_mode)) helper_fault(h, "invalid", EISDIR, "is a directory");
    if (t->existed && !S_ISREG(t->old.st_mode)) helper_fault(h, "invalid", 0, "not a regular file");
    // The rename would need no right to the old file; its own permissions are to count all the same.
    if (t->existed && access(t->path, W_OK) != 0) helper_fault(h, NULL, errno, "%s", strerror(errno));
    char *slash = strrchr(t->path, '/');
    if (!slash[1]) helper_fault(h, "invalid", EISDIR, "is a directory");
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) < 0) random = now_us();
    helper_cleanup = remove_temporary;
    snprintf(temporary, sizeof temporary, "%.*s.warren-%016llx", (int)(slash - t->path) + 1, t->path,
             (unsigned long long)random);
    int fd = open(temporary, flags | O_CREAT | O_EXCL | O_NOFOLLOW, fresh);
    if (fd >= 0) return fd;
    int error = errno;
    temporary[0] = 0;
    helper_fault(h, NULL, error, "%s", strerror(error));
}

// Returns the number of bytes; ends the helper when the host goes away half-way.
static uint64_t receive(struct helper *h, int fd, int64_t bytesMax) {
    uint64_t total = 0;
    struct frame f;
    for (;;) {
        enum helper_state state = helper_next(h, &f);
        if (state == HELPER_GONE) {
            if (helper_cleanup) helper_cleanup();
            _exit(0);
        }
        if (state == HELPER_BAD) helper_fault(h, f.code ? f.code : "invalid", 0, "%s", f.why ? f.why : "bad frame");
        if (f.tag == TAG_JSON) {
            struct json root, op;
            if (json_check((const char *)f.data, f.len, &root) && json_get(root, "op", &op) && json_equals(op, "eof"))
                return total;
            helper_fault(h, "invalid", 0, "only data and eof are expected");
        }
        if (f.tag != TAG_STDIN) helper_fault(h, "invalid", 0, "only data and eof are expected");
        if (bytesMax >= 0 && total + f.len > (uint64_t)bytesMax) helper_fault(h, "limit", EFBIG, "more than bytesMax");
        for (size_t at = 0; at < f.len;) {
            ssize_t n = write(fd, f.data + at, f.len - at);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) helper_fault(h, NULL, errno, "%s", strerror(errno));
            at += (size_t)n;
        }
        total += f.len;
    }
}

static void write_work(struct helper *h) {
    struct request *r = h->request;
    bool hasGid;
    struct target t = {.path = helper_path(h, "path")};
    t.mode = request_int(r, "mode", -1, 0, 07777);
    t.bytesMax = request_int(r, "bytesMax", -1, 0, INT64_MAX);
    t.append = request_bool(r, "append", false);
    t.atomic = request_bool(r, "atomic", true) && !t.append;
    char *owner = request_string(r, "owner");
    if (owner && !(t.owned = user_digits(owner, &t.uid, &t.gid, &hasGid))) r->bad = "owner";
    bool parents = request_bool(r, "parents", false);
    if (r->bad) helper_fault(h, "invalid", 0, "bad field: %s", r->bad);
    int error = parents ? make_parents(t.path) : 0;
    if (error) helper_fault(h, NULL, error, "parents: %s", strerror(error));
    t.path = resolve(h, t.path);
    int fd = open_target(h, &t);
    helper_json(h, "{\"ev\":\"ready\"}");
    uint64_t total = receive(h, fd, t.bytesMax);
    if (t.existed && (t.old.st_uid != geteuid() || t.old.st_gid != getegid())) {
        int ignored = fchown(fd, t.old.st_uid, t.old.st_gid); // root keeps the owner; a user cannot, and need not
        (void)ignored;
    }
    if (t.owned && fchown(fd, t.uid, t.gid) != 0) helper_fault(h, NULL, errno, "owner: %s", strerror(errno));
    // After the data and the owner, because both clear the set-id bits.
    if (t.mode >= 0 && fchmod(fd, (mode_t)t.mode) != 0) helper_fault(h, NULL, errno, "mode: %s", strerror(errno));
    if (t.mode < 0 && t.existed && fchmod(fd, t.old.st_mode & 07777) != 0)
        helper_fault(h, NULL, errno, "mode: %s", strerror(errno));
    if (t.atomic && (fsync(fd) != 0 || rename(temporary, t.path) != 0)) helper_fault(h, NULL, errno, "%s", strerror(errno));
    temporary[0] = 0;
    if (close(fd) != 0) helper_fault(h, NULL, errno, "%s", strerror(errno));
    helper_json(h, "{\"ev\":\"ok\",\"bytes\":%llu}", (unsigned long long)total);
}

void op_file_read(struct conn *c, struct request *r) { helper_run(c, r, read_work); }
void op_file_write(struct conn *c, struct request *r) { helper_run(c, r, write_work); }
