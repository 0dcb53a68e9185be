// What passes the check can be walked and decoded without leaving the text.
#include <stdlib.h>
#include <string.h>

#include "caps.h"
#include "config.h"
#include "json.h"
#include "limits.h"
#include "text.h"

struct config config;
bool caps_can_become(void) { return true; }

static void visit(struct json v, int depth) {
    if (depth > JSON_DEPTH_MAX) abort();
    if (json_is(v, '"')) {
        char *out = malloc(v.len);
        size_t n = json_decode(v, out);
        if (n + 2 > v.len || !utf8_valid(out, n)) abort();
        free(out);
        free(json_string(v));
    }
    if (json_is(v, '0')) json_integer(v);
    struct json_walk w = json_open(v);
    struct json key, value, again;
    while (json_next(&w, &key, &value)) {
        if (value.len == 0) abort();
        if (json_is(v, '{')) {
            char *name = json_string(key);
            if (name && !json_get(v, name, &again)) abort();
            free(name);
        }
        visit(value, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct json root;
    if (!json_check((const char *)data, size, &root)) return 0;
    visit(root, 0);
    struct request r = {.root = root};
    request_int(&r, "a", 0, 0, 100);
    request_bool(&r, "b", false);
    free(request_string(&r, "c"));
    return 0;
}
