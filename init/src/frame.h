// One frame of the wire: u32 big-endian length, then a body that is JSON ('{') or a tag and raw bytes.
#ifndef FRAME_H
#define FRAME_H

#include <stddef.h>
#include <stdint.h>

enum { TAG_STDIN = 1, TAG_STDOUT = 2, TAG_STDERR = 3, TAG_RAW = 4, TAG_JSON = '{' };
enum { FRAME_HEADER = 4 };

enum frame_state { FRAME_MORE, FRAME_READY, FRAME_BAD };

struct frame {
    uint8_t tag;
    const uint8_t *data; // JSON with its '{', stream bytes without the tag
    size_t len;
    size_t used;      // bytes of the buffer this frame takes
    size_t wanted;    // FRAME_MORE: bytes the buffer must hold before it makes sense to look again
    const char *code; // FRAME_BAD: the fault
    const char *why;
};

enum frame_state frame_read(const uint8_t *buf, size_t have, struct frame *out);
void frame_header(uint8_t header[5], uint8_t tag, size_t dataLen); // for stream frames

#endif
