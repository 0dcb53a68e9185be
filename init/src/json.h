// Strict JSON, read in place: checked once, then looked up by scanning. Nothing is allocated, so nothing can be flooded.
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json { // a value inside a checked text
    const char *at;
    size_t len;
};

struct json_walk {
    const char *at, *end;
    bool started;
};

// True for exactly one value: valid UTF-8, depth <= JSON_DEPTH_MAX, no lone surrogates.
bool json_check(const char *text, size_t len, struct json *out);

bool json_is(struct json, char kind); // kind: '{' '[' '"' 't'(true/false) 'n' '0'(number)
struct json_walk json_open(struct json container);
bool json_next(struct json_walk *, struct json *key, struct json *value); // key only of objects
bool json_get(struct json object, const char *key, struct json *out);     // first wins
bool json_equals(struct json string, const char *plain);
// Decodes a string into out (room >= string.len); returns the length. NULs are kept.
size_t json_decode(struct json string, char *out);
int64_t json_integer(struct json number); // fraction cut off, saturating

// A request under reading: the first field that has the wrong type or range is remembered.
struct request {
    struct json root;
    const char *bad;
};
int64_t request_int(struct request *, const char *key, int64_t absent, int64_t min, int64_t max);
bool request_bool(struct request *, const char *key, bool absent);
// A fresh NUL-terminated string, or NULL when absent; a NUL inside is bad.
char *request_string(struct request *, const char *key);
char *json_string(struct json string); // NULL: not a string, has a NUL, or no memory

#endif
