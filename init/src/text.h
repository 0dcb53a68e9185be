// A growing piece of text, and JSON written into it.
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *data;
    size_t len, room;
    bool failed; // out of memory: the text is incomplete and must not be used
};

void text_free(struct text *);
bool text_reserve(struct text *, size_t more);
void text_add(struct text *, const void *bytes, size_t n);
__attribute__((format(printf, 2, 3))) void text_fmt(struct text *, const char *format, ...);
// A quoted JSON string; bytes that are not UTF-8 become U+FFFD.
void text_quote(struct text *, const char *s, size_t n);
void text_base64(struct text *, const uint8_t *bytes, size_t n);
// Length of the UTF-8 sequence at s (1..4), 0 if it is not one.
size_t utf8_length(const uint8_t *s, size_t n);
bool utf8_valid(const char *s, size_t n);

#endif
