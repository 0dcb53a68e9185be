// One connection of the host (or of a sudo shim): frames in, frames out, bounded both ways.
#ifndef CONN_H
#define CONN_H

#include <stdarg.h>

#include "frame.h"
#include "json.h"
#include "loop.h"
#include "text.h"

struct conn;

struct conn_ops {
    // False: the frame could not be taken whole (see conn->taken); it is offered again after conn_resume.
    bool (*frame)(struct conn *, const struct frame *);
    void (*drained)(struct conn *); // everything was sent; NULL: nobody cares
    void (*gone)(struct conn *);    // the peer has closed; the connection is freed afterwards
};

struct conn {
    struct source source;
    struct conn *next, *prev;
    const struct conn_ops *ops;
    void *owner;
    uint8_t *in;
    size_t inHave, inRoom;
    size_t taken; // bytes of the stream frame at the head that its owner already took
    struct text out;
    size_t outSent;
    struct timer timer;
    bool paused, ending, lingering, sudo, pumping, peerMaySend;
    bool wantsFds; // a sudo shim's request comes with descriptors; nothing after it does
    int passed[3];
};

extern const struct conn_ops conn_idle; // an operation that expects nothing more

void conn_accept(int fd, bool sudo, const struct conn_ops *first);
unsigned conn_count(bool sudo);
void conn_count_helper(int delta); // connections that a helper process owns now

void conn_send(struct conn *, uint8_t tag, const void *data, size_t n);
// One frame of n bytes that are waiting in a pipe, without copying them through us. False: nothing was taken.
bool conn_splice(struct conn *, uint8_t tag, int pipe, size_t n);
__attribute__((format(printf, 2, 3))) void conn_json(struct conn *, const char *format, ...);
void conn_text(struct conn *, struct text *); // sends and frees; text is JSON
__attribute__((format(printf, 4, 5))) void conn_fault(struct conn *, const char *code, int error, const char *format, ...);
__attribute__((format(printf, 3, 4))) void conn_warn(struct conn *, const char *code, const char *format, ...);
bool conn_full(const struct conn *); // the producer should stop until drained()
void conn_end(struct conn *);        // last frame was sent: flush, then close
void conn_resume(struct conn *);     // offer the frame at the head again
// Gives the socket away to a forked helper: frees everything in the parent, sends nothing.
void conn_give_up(struct conn *);

// The JSON of a fault, shared with helpers that write to a blocking socket.
void fault_text(struct text *, const char *code, int error, const char *format, va_list args);

#endif
