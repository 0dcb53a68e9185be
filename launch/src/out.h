/* What goes to the runner: answers and events, gathered as frames and written when standard output takes them. */
#ifndef WARREN_LAUNCH_OUT_H
#define WARREN_LAUNCH_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One frame: begin, any number of puts, end. */
size_t frame_begin(void);
void frame_end(size_t at);
__attribute__((format(printf, 1, 2))) void put(const char *format, ...);

/* id 0: a frame that could not be read. error 0: none. tail: the end of what the runtime said, or NULL. */
void answer_fault(int64_t id, const char *step, int error, const char *message, const char *tail, size_t tail_length);
/* members: what the ok object holds, in JSON. */
__attribute__((format(printf, 2, 3))) void answer_ok(int64_t id, const char *members, ...);

/* Writes what can be written; false: nobody reads any more. */
bool out_flush(void);
size_t out_unsent(void);

#endif
