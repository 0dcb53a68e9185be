// Who a command runs as.
#ifndef USER_H
#define USER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct user {
    uid_t uid;
    gid_t gid;
    char name[64];
    char home[256];
    char shell[128];
};

enum user_result { USER_OK, USER_UNKNOWN, USER_FORBIDDEN };

// "user", "root", a name of /etc/passwd, "uid" or "uid:gid"; NULL means "user".
enum user_result user_find(const char *text, struct user *out);

// The pure parts, for tests.
bool user_digits(const char *text, uid_t *uid, gid_t *gid, bool *hasGid);
// Looks for a name, or for a uid when name is NULL. Fills everything.
bool passwd_find(const char *text, size_t len, const char *name, uid_t uid, struct user *out);

#endif
