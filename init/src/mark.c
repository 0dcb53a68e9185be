// What is noted about files: extended attributes below a prefix, set as a whole and shown with entries.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "file.h"
#include "helper.h"
#include "limits.h"

enum { NAMES_BYTES = 64 << 10, VALUE_BYTES = 4096, PREFIX_BYTES = 64, NAME_BYTES = 256 };

static char prefix[PREFIX_BYTES]; // of what entries show; empty: nothing

static bool starts(const char *name) { return strncmp(name, prefix, strlen(prefix)) == 0; }

static void take_prefix(struct helper *h, char *given) {
    // Others than "user." are the system's.
    if (!given || strncmp(given, "user.", 5) != 0 || strlen(given) >= sizeof prefix) helper_fault(h, "invalid", 0, "bad field: prefix");
    strcpy(prefix, given);
}

void marks_shown(struct helper *h) {
    struct json given;
    if (!json_get(h->request->root, "marks", &given) || json_is(given, 'n')) return;
    take_prefix(h, request_string(h->request, "marks"));
}

static void one_mark(struct text *t, const char *path, const char *name, bool *first) {
    char value[VALUE_BYTES];
    ssize_t n = lgetxattr(path, name, value, sizeof value);
    if (n < 0 || !utf8_valid(value, (size_t)n)) return;
    text_fmt(t, *first ? ",\"marks\":{" : ",");
    *first = false;
    const char *rest = name + strlen(prefix);
    text_quote(t, rest, strlen(rest));
    text_add(t, ":", 1);
    text_quote(t, value, (size_t)n);
}

void marks_text(struct text *t, int dir, const char *leaf, mode_t mode) {
    char path[PATH_MAX + 64], *names;
    if (!prefix[0] || (!S_ISREG(mode) && !S_ISDIR(mode)) || !(names = malloc(NAMES_BYTES))) return;
    if (dir < 0) snprintf(path, sizeof path, "%s", leaf);
    else snprintf(path, sizeof path, "/proc/self/fd/%d/%s", dir, leaf);
    ssize_t n = llistxattr(path, names, NAMES_BYTES);
    bool first = true;
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1)
        if (starts(names + at) && utf8_valid(names + at, strlen(names + at))) one_mark(t, path, names + at, &first);
    if (!first) text_add(t, "}", 1);
    free(names);
}

// By what is open, not by its name: where a sandbox has no root of its own it can open only what is its own, but could mark by name
// whatever its user may write to. A file that may only be written to is opened for that.
static int open_marked(struct helper *h, const char *path) {
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == EACCES) fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) helper_fault(h, NULL, errno, "%s", strerror(errno));
    return fd;
}

static void forget(struct helper *h, int fd) {
    char *names = malloc(NAMES_BYTES);
    ssize_t n = names ? flistxattr(fd, names, NAMES_BYTES) : -1;
    if (n < 0) helper_fault(h, errno == ENOTSUP ? "unsupported" : NULL, errno, "%s", strerror(errno));
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1)
        if (starts(names + at)) fremovexattr(fd, names + at);
    free(names);
}

static void mark_work(struct helper *h) {
    char *path = helper_path(h, "path");
    struct json values, key, value;
    take_prefix(h, request_string(h->request, "prefix"));
    if (!json_get(h->request->root, "values", &values) || !json_is(values, '{')) helper_fault(h, "invalid", 0, "bad field: values");
    int fd = open_marked(h, path);
    forget(h, fd);
    for (struct json_walk w = json_open(values); json_next(&w, &key, &value);) {
        char *name = json_string(key), *text = json_string(value), full[NAME_BYTES];
        if (!name || !text || snprintf(full, sizeof full, "%s%s", prefix, name) >= (int)sizeof full || strlen(text) > VALUE_BYTES)
            helper_fault(h, "invalid", 0, "bad field: values");
        if (fsetxattr(fd, full, text, strlen(text), 0) != 0)
            helper_fault(h, errno == ENOTSUP ? "unsupported" : errno == ENOSPC || errno == E2BIG ? "limit" : NULL, errno, "%s", strerror(errno));
        free(name);
        free(text);
    }
    close(fd);
    helper_json(h, "{\"ev\":\"ok\"}");
}

void op_file_mark(struct conn *c, struct request *r) { helper_run(c, r, mark_work); }
