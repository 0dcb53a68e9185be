// Starting a program: fork, become the user, exec. The result of the exec arrives on a pipe, later: init never waits
// for a child, because a child that already has the user's uid can be stopped by anyone of that uid.
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "user.h"

enum { LAUNCH_FDS = 10 };
enum launch_stage { LAUNCH_SETUP = 1, LAUNCH_CWD, LAUNCH_EXEC };

struct launch {
    char **argv, **envp;
    const char *program; // NULL: argv[0], searched in PATH of envp if it has no '/'
    const char *cwd;
    struct user user;
    int fds[LAUNCH_FDS]; // fds[n] becomes descriptor n; -1: closed. All are >= LAUNCH_FDS or equal to n.
    int tty;             // becomes the controlling terminal; -1: none
    int chown;           // a descriptor that is to belong to the user, -1: none
};

struct launch_report {
    int stage;
    int error;
};

extern const struct launch launch_none; // all descriptors -1

void launch_start(void); // raises the descriptor limit of init, remembers the one for children
// The pid, or -1 with errno. *status gives a launch_report, or end of file when the program runs.
pid_t launch(const struct launch *, int *status);
const char *launch_code(struct launch_report); // the wire's fault code
const char *launch_word(struct launch_report); // for its message

// Descriptors above the ones that are handed out, so that dup2 in the child never tramples on a source.
int pipe_high(int fds[2]);
int fd_high(int fd);

#endif
