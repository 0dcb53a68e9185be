// Operations that may block run in a process of their own, as the user they act for, on the connection's socket.
#ifndef HELPER_H
#define HELPER_H

#include "conn.h"
#include "user.h"

struct helper { // what the child works with
    int fd;     // the connection, blocking
    struct request *request;
    uint8_t *in; // frames that arrived together with the request, and those read later
    size_t inHave, inRoom;
};

// Forks; in the child runs work() and exits. Reads "user" of the request. The parent forgets the connection.
void helper_run(struct conn *, struct request *, void (*work)(struct helper *));

// For the child. Each of these exits when the host has gone.
enum helper_state { HELPER_FRAME, HELPER_GONE, HELPER_BAD };
enum helper_state helper_next(struct helper *, struct frame *); // frame stays valid until the next call
void helper_write(struct helper *, const void *bytes, size_t n);
void helper_send(struct helper *, uint8_t tag, const void *data, size_t n);
void helper_text(struct helper *, struct text *); // sends and frees
__attribute__((format(printf, 2, 3))) void helper_json(struct helper *, const char *format, ...);
// Sends the fault and ends the helper; the code comes from the errno when code is NULL.
__attribute__((noreturn, format(printf, 4, 5))) void helper_fault(struct helper *, const char *code, int error,
                                                                const char *format, ...);
__attribute__((noreturn)) void helper_done(struct helper *);
// Absolute, not too long, no NUL; faults otherwise. Owned by the process.
char *helper_path(struct helper *, const char *key);
extern void (*helper_cleanup)(void); // called before any early end, also on SIGTERM

#endif
