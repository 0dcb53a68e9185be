/* A strict JSON reader for one frame: no allocation, strings are unescaped in place, everything bounded. */
#ifndef WARREN_LAUNCH_JSON_H
#define WARREN_LAUNCH_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_NODES 4096
#define JSON_DEPTH 8

enum json_type { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
	enum json_type type;
	int next;        /* index of the next sibling, 0 when last */
	int first;       /* first child; of an object's key: its value */
	int count;       /* children of an array, members of an object */
	int64_t number;
	char *text;      /* NUL-terminated; no NUL inside */
	size_t length;
};

struct json_doc {
	struct json node[JSON_NODES];
	int used;
};

/* text[length] must be writable (a terminator is put there). Returns the root, or NULL. Integers only. */
const struct json *json_read(struct json_doc *doc, char *text, size_t length);
/* The first member of that name, or NULL. */
const struct json *json_get(const struct json_doc *doc, const struct json *object, const char *name);
const struct json *json_child(const struct json_doc *doc, const struct json *parent);
const struct json *json_next(const struct json_doc *doc, const struct json *node);
/* Length of the valid UTF-8 sequence at text, or 0. */
int json_utf8(const char *text, const char *end);

#endif
