#include "ring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "limits.h"

enum { ROOM_FIRST = 4096, RUNS_FIRST = 8 };

static size_t total;
bool (*ring_make_room)(const struct ring *);

size_t ring_total(void) { return total; }

static uint8_t *map(size_t n) {
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    madvise(p, n, MADV_DONTFORK); // a fork must not pay for everybody's old output
    return p;
}

static void grow(struct ring *r, size_t needed) {
    size_t room = r->room ? r->room : ROOM_FIRST;
    while (room < needed && room < r->max) room *= 2;
    if (room > r->max) room = r->max;
    if (room <= r->room) return;
    while (total + room - r->room > REPLAY_TOTAL_MAX)
        if (!ring_make_room || !ring_make_room(r)) return; // keeps less instead
    uint8_t *data = map(room);
    if (!data) return;
    for (uint64_t at = r->from; at < r->to;) {
        size_t i = (size_t)(at % r->room), j = (size_t)(at % room), n = (size_t)(r->to - at);
        if (n > r->room - i) n = r->room - i;
        if (n > room - j) n = room - j;
        memcpy(data + j, r->data + i, n);
        at += n;
    }
    if (r->data) munmap(r->data, r->room);
    total += room - r->room;
    r->data = data;
    r->room = room;
}

static struct ring_run *run(const struct ring *r, size_t i) { return &r->runs[(r->runFirst + i) % r->runRoom]; }

static void drop_until(struct ring *r, uint64_t from) {
    r->from = from;
    while (r->runCount > 0 && run(r, 0)->end <= from) {
        r->runFirst = (r->runFirst + 1) % r->runRoom;
        r->runCount--;
    }
}

static bool more_runs(struct ring *r) {
    size_t room = r->runRoom ? r->runRoom * 2 : RUNS_FIRST;
    if (room > REPLAY_RUNS_MAX) return false;
    struct ring_run *runs = malloc(room * sizeof *runs);
    if (!runs) return false;
    for (size_t i = 0; i < r->runCount; i++) runs[i] = *run(r, i);
    free(r->runs);
    r->runs = runs;
    r->runRoom = room;
    r->runFirst = 0;
    return true;
}

static void note_run(struct ring *r, uint8_t tag) {
    if (r->runCount > 0 && run(r, r->runCount - 1)->tag == tag) {
        run(r, r->runCount - 1)->end = r->to;
        return;
    }
    // Streams that alternate byte by byte would need more book-keeping than output: then the oldest goes.
    if (r->runCount == r->runRoom && !more_runs(r)) {
        if (r->runCount == 0) {
            r->from = r->to;
            return;
        }
        drop_until(r, run(r, 0)->end);
    }
    *run(r, r->runCount++) = (struct ring_run){r->to, tag};
}

void ring_put(struct ring *r, uint8_t tag, const uint8_t *bytes, size_t n) {
    if (n == 0) return;
    if (r->to - r->from + n > r->room) grow(r, (size_t)(r->to - r->from) + n);
    uint64_t end = r->to + n;
    if (n > r->room) { // only the tail can be kept
        bytes += n - r->room;
        n = r->room;
    }
    if (end - r->from > r->room) drop_until(r, end - r->room);
    for (uint64_t at = end - n; at < end;) {
        size_t i = (size_t)(at % r->room), part = (size_t)(end - at);
        if (part > r->room - i) part = r->room - i;
        memcpy(r->data + i, bytes, part);
        bytes += part;
        at += part;
    }
    r->to = end;
    if (n > 0) note_run(r, tag);
}

size_t ring_peek(const struct ring *r, uint64_t at, const uint8_t **bytes, uint8_t *tag, size_t max) {
    if (at < r->from || at >= r->to) return 0;
    // Binary search: an attacher may be anywhere in thousands of runs.
    size_t low = 0, high = r->runCount;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (run(r, mid)->end <= at) low = mid + 1;
        else high = mid;
    }
    if (low == r->runCount) return 0;
    size_t i = (size_t)(at % r->room), n = (size_t)(run(r, low)->end - at);
    if (n > r->room - i) n = r->room - i;
    if (n > max) n = max;
    *bytes = r->data + i;
    *tag = run(r, low)->tag;
    return n;
}

void ring_free(struct ring *r) {
    if (r->data) munmap(r->data, r->room);
    total -= r->room;
    free(r->runs);
    size_t max = r->max;
    *r = (struct ring){.max = max};
}
