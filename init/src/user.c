#include "user.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "caps.h"
#include "config.h"
#include "limits.h"

enum { PASSWD_MAX = 256 << 10 };

static bool number(const char *from, const char *to, unsigned long *out) {
    if (from == to || to - from > 10) return false;
    *out = 0;
    for (const char *p = from; p < to; p++) {
        if (*p < '0' || *p > '9') return false;
        *out = *out * 10 + (unsigned long)(*p - '0');
    }
    return *out < 0xffffffffUL; // -1 means "leave it" to setresuid: never an id
}

bool user_digits(const char *text, uid_t *uid, gid_t *gid, bool *hasGid) {
    unsigned long u, g = 0;
    const char *colon = strchr(text, ':');
    const char *end = text + strlen(text);
    if (!number(text, colon ? colon : end, &u)) return false;
    if (colon && !number(colon + 1, end, &g)) return false;
    *uid = (uid_t)u;
    *gid = colon ? (gid_t)g : (gid_t)u;
    *hasGid = colon != NULL;
    return true;
}

static void copy(char *to, size_t room, const char *from, const char *end) {
    size_t n = (size_t)(end - from) < room ? (size_t)(end - from) : 0; // too long: as if empty, never cut
    memcpy(to, from, n);
    to[n] = 0;
}

bool passwd_find(const char *text, size_t len, const char *name, uid_t uid, struct user *out) {
    const char *end = text + len;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) stop = end;
        const char *field[8] = {line}; // starts of name:x:uid:gid:gecos:home:shell
        int n = 1;
        for (const char *p = line; p < stop && n < 7; p++)
            if (*p == ':') field[n++] = p + 1;
        unsigned long u, g;
        if (n == 7 && number(field[2], field[3] - 1, &u) && number(field[3], field[4] - 1, &g)) {
            size_t nameLen = (size_t)(field[1] - 1 - line);
            bool hit = name ? strlen(name) == nameLen && memcmp(name, line, nameLen) == 0 : u == uid;
            if (hit && nameLen > 0 && !memchr(line, 0, (size_t)(stop - line))) {
                out->uid = (uid_t)u;
                out->gid = (gid_t)g;
                copy(out->name, sizeof out->name, line, field[1] - 1);
                copy(out->home, sizeof out->home, field[5], field[6] - 1);
                copy(out->shell, sizeof out->shell, field[6], stop);
                return true;
            }
        }
        line = stop + 1;
    }
    return false;
}

// /etc/passwd belongs to the sandbox: it may be a FIFO, a device or huge.
static char *read_passwd(size_t *len) {
    int fd = open("/etc/passwd", O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return NULL;
    struct stat st;
    char *text = NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        size_t room = st.st_size < PASSWD_MAX ? (size_t)st.st_size : PASSWD_MAX;
        text = malloc(room);
        ssize_t n = text ? read(fd, text, room) : -1;
        if (n < 0) free(text), text = NULL;
        *len = n > 0 ? (size_t)n : 0;
    }
    close(fd);
    return text;
}

static enum user_result allowed(const struct user *u) {
    if (u->uid == 0 && !config.dev) return USER_FORBIDDEN;
    if (u->gid == 0 && !config.dev && u->gid != config.gid) return USER_FORBIDDEN;
    bool same = u->uid == geteuid() && u->gid == getegid();
    if (!caps_can_become()) return same ? USER_OK : USER_FORBIDDEN;
    // Nobody shares init's own uid, or its forwarder's: they could signal and trace them. (Run by root, for tests, there is no such uid.)
    if (geteuid() != 0 && (u->uid == geteuid() || u->uid == FORWARD_UID)) return USER_FORBIDDEN;
    return USER_OK;
}

static void fill(struct user *u, const char *name, const char *home) {
    if (!u->name[0]) snprintf(u->name, sizeof u->name, "%s", name);
    if (u->home[0] != '/') snprintf(u->home, sizeof u->home, "%s", home);
    if (u->shell[0] != '/') snprintf(u->shell, sizeof u->shell, "/bin/sh");
}

enum user_result user_find(const char *text, struct user *out) {
    *out = (struct user){0};
    if (!text) text = "user";
    uid_t uid;
    gid_t gid;
    bool hasGid = true;
    bool byId = true;
    if (strcmp(text, "user") == 0) uid = config.uid, gid = config.gid;
    else if (strcmp(text, "root") == 0) uid = 0, gid = 0;
    else byId = user_digits(text, &uid, &gid, &hasGid);

    size_t len = 0;
    char *passwd = read_passwd(&len);
    bool found = passwd && passwd_find(passwd, len, byId ? NULL : text, byId ? uid : 0, out);
    free(passwd);
    if (!found && !byId) return USER_UNKNOWN;
    if (byId) {
        out->uid = uid;
        if (hasGid || !found) out->gid = gid;
    }
    char digits[24];
    snprintf(digits, sizeof digits, "%u", (unsigned)out->uid);
    fill(out, strcmp(text, "user") == 0 ? "user" : out->uid == 0 ? "root" : digits, out->uid == 0 ? "/root" : "/");
    return allowed(out);
}
