// Reading what programs write: one scratch buffer for all, and pipes that are emptied after nobody listens any more.
#ifndef STREAM_H
#define STREAM_H

#include <stddef.h>
#include <stdint.h>

// READ_CHUNK bytes; the pages are given back by scratch_release.
uint8_t *scratch(void);
void scratch_release(void);

// Reads into nothing until end of file, so that a daemon that kept the pipe does not die of SIGPIPE.
void drain(int fd);
int unread_bytes(int fd);
// A pipe found full is worth a larger one; refused where the user's pipe pages are used up, which is fine.
void grow_pipe(int fd);

#endif
