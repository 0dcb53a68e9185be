// Frames from a confused host: whatever the bytes are, the reader stays inside them and makes progress.
#include <stdlib.h>
#include <string.h>

#include "caps.h"
#include "config.h"
#include "frame.h"
#include "json.h"
#include "limits.h"

struct config config;
bool caps_can_become(void) { return true; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (size_t at = 0; at < size;) {
        struct frame f = {0};
        enum frame_state state = frame_read(data + at, size - at, &f);
        if (state == FRAME_BAD && (!f.code || !f.why)) abort();
        if (state == FRAME_MORE && f.wanted <= size - at) abort();
        if (state != FRAME_READY) break;
        if (f.used > size - at || f.data + f.len != data + at + f.used || f.len > JSON_FRAME_MAX) abort();
        struct json root;
        if (f.tag == TAG_JSON) json_check((const char *)f.data, f.len, &root);
        at += f.used;
    }
    return 0;
}
