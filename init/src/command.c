#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "limits.h"

bool list_add(struct list *l, char *s) {
    if (s && l->count + 2 > l->room) {
        size_t room = l->room ? l->room * 2 : 16;
        char **at = realloc(l->at, room * sizeof *at);
        if (at) l->at = at, l->room = room;
    }
    if (!s || l->count + 2 > l->room) return free(s), false;
    l->at[l->count++] = s;
    l->at[l->count] = NULL;
    return true;
}

void list_free(struct list *l) {
    for (size_t i = 0; i < l->count; i++) free(l->at[i]);
    free(l->at);
    *l = (struct list){0};
}

bool list_has(const struct list *l, const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; i < l->count; i++)
        if (strncmp(l->at[i], name, n) == 0 && l->at[i][n] == '=') return true;
    return false;
}

bool list_default(struct list *l, const char *name, const char *value) {
    if (list_has(l, name)) return true;
    size_t n = strlen(name) + strlen(value) + 2;
    char *s = malloc(n);
    if (s) snprintf(s, n, "%s=%s", name, value);
    return list_add(l, s);
}

bool list_login(struct list *l, const struct user *u) {
    const char *path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    return list_default(l, "HOME", u->home) && list_default(l, "LOGNAME", u->name) &&
           list_default(l, "USER", u->name) && list_default(l, "SHELL", u->shell) && list_default(l, "PATH", path);
}

static const char *read_argv(struct request *r, struct list *argv) {
    struct json array, value, key;
    if (!json_get(r->root, "argv", &array) || !json_is(array, '[')) return "argv must be an array";
    struct json_walk w = json_open(array);
    while (json_next(&w, &key, &value)) {
        if (argv->count == ARGV_MAX) return "too many arguments";
        if (!list_add(argv, json_string(value))) return "argv must hold strings without NUL";
    }
    return argv->count ? NULL : "argv is empty";
}

// One NAME=value from a JSON pair, or NULL.
static char *pair(struct json key, struct json value) {
    if (!json_is(value, '"')) return NULL;
    char *s = malloc(key.len + value.len);
    if (!s) return NULL;
    size_t n = json_decode(key, s);
    bool good = n > 0 && !memchr(s, '=', n);
    s[n++] = '=';
    n += json_decode(value, s + n);
    s[n] = 0;
    if (!good || memchr(s, 0, n)) return free(s), NULL;
    return s;
}

static const char *read_env(struct request *r, struct list *env) {
    struct json object, key, value;
    if (!json_get(r->root, "env", &object) || json_is(object, 'n')) return NULL;
    if (!json_is(object, '{')) return "env must be an object";
    struct json_walk w = json_open(object);
    for (size_t n = 0; json_next(&w, &key, &value); n++) {
        if (n == ENV_MAX) return "too many environment entries";
        char *s = pair(key, value);
        if (!s) return "env must hold strings without NUL, names without '='";
        char *equals = strchr(s, '=');
        *equals = 0;
        bool again = strcmp(s, "WARREN_OP") == 0; // ours, and a second one is not the first
        // Only a small environment is searched for doubles: 4096 entries would cost millions of comparisons.
        if (!again && n < 256) again = list_has(env, s);
        *equals = '=';
        if (again) free(s);
        else if (!list_add(env, s)) return "out of memory";
    }
    return NULL;
}

bool command_user(struct conn *c, struct request *r, struct user *u) {
    char *name = request_string(r, "user");
    enum user_result result = r->bad ? USER_UNKNOWN : user_find(name, u);
    free(name);
    if (result == USER_FORBIDDEN) conn_fault(c, "forbidden", 0, "this user is not allowed here");
    if (result == USER_UNKNOWN) conn_fault(c, "invalid", 0, "unknown user");
    return result == USER_OK;
}

void command_free(struct command *m) {
    struct list argv = {m->argv, 0, 0}, env = {m->envp, 0, 0};
    while (m->argv && m->argv[argv.count]) argv.count++;
    while (m->envp && m->envp[env.count]) env.count++;
    list_free(&argv);
    list_free(&env);
    free(m->cwd);
    *m = (struct command){0};
}

bool command_read(struct conn *c, struct request *r, const char *mark, bool needsArgv, struct command *out) {
    struct list argv = {0}, env = {0};
    *out = (struct command){0};
    if (!command_user(c, r, &out->user)) return false;
    const char *why = needsArgv ? read_argv(r, &argv) : NULL;
    if (!why && !list_default(&env, "WARREN_OP", mark)) why = "out of memory";
    if (!why) why = read_env(r, &env);
    if (!why && !list_login(&env, &out->user)) why = "out of memory";
    char *cwd = request_string(r, "cwd");
    if (!why && r->bad) why = "cwd must be a string";
    if (!why && !cwd) cwd = strdup(config.workspace);
    if (!why && (cwd[0] != '/' || strlen(cwd) > PATH_BYTES_MAX)) why = "cwd must be an absolute path";
    *out = (struct command){argv.at, env.at, cwd, out->user};
    if (!why) return true;
    bool limit = strncmp(why, "too many", 8) == 0 || strncmp(why, "out of", 6) == 0;
    command_free(out);
    conn_fault(c, limit ? "limit" : "invalid", 0, "%s", why);
    return false;
}
