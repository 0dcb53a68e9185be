// Those who listen to a process: the one connection that spawned it, or any number of later ones.
#ifndef ATTACH_H
#define ATTACH_H

#include "process.h"

struct attacher {
    struct attacher *next;
    struct process *process;
    struct conn *conn;
    uint64_t at; // position in the ring; unused for the connection that spawned
    bool hold;   // wants every byte: the process waits for it
};

void op_attach(struct conn *, struct request *);

bool attach_owner(struct process *, struct conn *); // the spawning connection
void attach_output(struct process *, uint8_t tag, const uint8_t *bytes, size_t n);
// The same for n bytes that wait in a pipe; false: they have to be read and given to attach_output.
bool attach_splice(struct process *, uint8_t tag, int pipe, size_t n);
void attach_exit(struct process *);   // exit event is there: pass it on
void attach_detach(struct process *); // ends all connections without a word
void attach_stdin_ready(struct process *);

#endif
