// What a request says about a program: argv, environment, directory, user.
#ifndef COMMAND_H
#define COMMAND_H

#include "conn.h"
#include "sweep.h"
#include "user.h"

struct command {
    char **argv; // one block each, freed whole
    char **envp;
    char *cwd;
    struct user user;
};

// Reads argv (unless argv is absent and may be), env, cwd, user. On failure the fault is sent and false returned.
bool command_read(struct conn *, struct request *, const char *mark, bool needsArgv, struct command *);
void command_free(struct command *);
// Reads "user" alone; sends the fault itself.
bool command_user(struct conn *, struct request *, struct user *);

struct list { // strings under construction: one array for execve
    char **at;
    size_t count, room;
};
bool list_add(struct list *, char *owned); // takes the string, also when it fails
void list_free(struct list *);
// Adds NAME=value unless the list has NAME.
bool list_default(struct list *, const char *name, const char *value);
bool list_has(const struct list *, const char *name);
// HOME, LOGNAME, USER, SHELL, PATH as far as they are missing.
bool list_login(struct list *, const struct user *);

#endif
