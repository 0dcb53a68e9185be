#include "frame.h"

#include "limits.h"

static enum frame_state bad(struct frame *out, const char *code, const char *why) {
    out->code = code;
    out->why = why;
    return FRAME_BAD;
}

enum frame_state frame_read(const uint8_t *buf, size_t have, struct frame *out) {
    out->wanted = FRAME_HEADER + 1;
    if (have < FRAME_HEADER) return FRAME_MORE;
    size_t len = (size_t)buf[0] << 24 | (size_t)buf[1] << 16 | (size_t)buf[2] << 8 | buf[3];
    if (len == 0) return bad(out, "invalid", "empty frame");
    if (len > JSON_FRAME_MAX) return bad(out, "limit", "frame too long");
    if (have == FRAME_HEADER) return FRAME_MORE;
    uint8_t tag = buf[FRAME_HEADER];
    if (tag != TAG_JSON && (tag < TAG_STDIN || tag > TAG_RAW)) return bad(out, "invalid", "unknown frame tag");
    if (tag != TAG_JSON && len > STREAM_FRAME_MAX) return bad(out, "limit", "stream frame too long");
    out->wanted = out->used = FRAME_HEADER + len;
    if (have < out->used) return FRAME_MORE;
    out->tag = tag;
    out->data = buf + FRAME_HEADER + (tag == TAG_JSON ? 0 : 1);
    out->len = len - (tag == TAG_JSON ? 0 : 1);
    return FRAME_READY;
}

void frame_header(uint8_t header[5], uint8_t tag, size_t dataLen) {
    size_t len = dataLen + 1;
    header[0] = (uint8_t)(len >> 24);
    header[1] = (uint8_t)(len >> 16);
    header[2] = (uint8_t)(len >> 8);
    header[3] = (uint8_t)len;
    header[4] = tag;
}
