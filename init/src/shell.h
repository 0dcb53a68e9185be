// Shells that live on between commands.
#ifndef SHELL_H
#define SHELL_H

#include "command.h"
#include "conn.h"
#include "reap.h"
#include "sweep.h"

enum { TOKEN_ROOM = 24 };

enum run_phase { RUN_RECEIVING, RUN_WAITING, RUN_RUNNING, RUN_ABORTING, RUN_FLUSHING };

struct run { // one command
    struct shell *shell;
    struct conn *conn; // NULL: the host has gone, the rest is cleaning up
    enum run_phase phase;
    struct text command;
    struct pid_list before; // who was there when it began: background jobs of earlier runs are spared
    struct timer timeout, probe;
    uint64_t number, probeMs;
    uint64_t startedUs, outputBytes, outputBytesMax;
    int64_t timeoutMs;
    size_t last; // output still in the pipe when it ended
    const char *reason;
    int code, signal;
    bool truncated, reported, restarted;
};

struct shell {
    struct shell *next;
    char id[16];
    char *path, *cwd, *argv;
    struct command command; // environment, first directory and user, for every start
    char mark[MARK_LEN + 1];
    struct child child; // pid 0: no shell process now
    struct source status, out, report;
    int driver, text; // where we write lines, and the command itself
    struct text reports;
    struct conn *opener, *closer;
    struct run *run, *queued;
    struct sweep sweep;
    struct timer abort;
    uint64_t startedUnixMs, runs;
    int lastCode, cwdTry, abortRound;
    bool started, lost, closing;
};

void op_shell_open(struct conn *, struct request *);
void op_shell_run(struct conn *, struct request *);
void op_shell_close(struct conn *, struct request *);
void op_shell_list(struct conn *, struct request *);

void shell_processes(struct text *); // for ps: objects, each with a leading comma if the text needs one
bool shell_has(pid_t);
void shell_hang_up(void); // all of them: an interactive shell does not heed a TERM

// run.c: one command in a shell. shell.c: the shell itself.
void run_create(struct shell *, struct conn *, struct request *);
void run_begin(struct run *);                  // the shell is there
void run_report(struct run *, int code);       // the command has ended, says the shell
void run_shell_ended(struct run *, int status); // the shell itself has ended
void run_output(struct shell *);               // its pipe has something
void run_swept(struct run *);
void run_finish(struct run *);                 // tells the host and frees
void run_abort(struct run *, const char *reason);
bool shell_launch(struct shell *);             // false with errno
bool shell_say(struct shell *, const char *line);
void shell_kill(struct shell *, int number);
void shell_idle(struct shell *);               // after a run: the queued one, or rest

#endif
