// The last bytes a detached process wrote, with the stream each came from. Positions count from its first byte ever.
#ifndef RING_H
#define RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_run { // bytes up to `end` (and from the previous run's end) have this tag
    uint64_t end;
    uint8_t tag;
};

struct ring {
    uint8_t *data;
    size_t room, max; // grows up to max
    uint64_t from, to;
    struct ring_run *runs;
    size_t runFirst, runCount, runRoom;
};

void ring_put(struct ring *, uint8_t tag, const uint8_t *bytes, size_t n);
// The longest piece of one tag at `at` (from <= at <= to), at most `max` bytes; 0 at the end.
size_t ring_peek(const struct ring *, uint64_t at, const uint8_t **bytes, uint8_t *tag, size_t max);
void ring_free(struct ring *);

// Bytes of memory all rings hold. ring_make_room is asked before it grows beyond REPLAY_TOTAL_MAX.
size_t ring_total(void);
extern bool (*ring_make_room)(const struct ring *);

#endif
