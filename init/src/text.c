#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_free(struct text *t) {
    free(t->data);
    *t = (struct text){0};
}

bool text_reserve(struct text *t, size_t more) {
    if (t->room - t->len >= more) return true;
    size_t room = t->room ? t->room : 256;
    while (room - t->len < more) room *= 2;
    char *data = realloc(t->data, room);
    if (!data) return t->failed = true, false;
    t->data = data;
    t->room = room;
    return true;
}

void text_add(struct text *t, const void *bytes, size_t n) {
    if (n == 0 || !text_reserve(t, n)) return;
    memcpy(t->data + t->len, bytes, n);
    t->len += n;
}

void text_fmt(struct text *t, const char *format, ...) {
    char small[512];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof small) {
        text_add(t, small, (size_t)n);
    } else if (n >= 0 && text_reserve(t, (size_t)n + 1)) {
        vsnprintf(t->data + t->len, (size_t)n + 1, format, again);
        t->len += (size_t)n;
    }
    va_end(again);
}

size_t utf8_length(const uint8_t *s, size_t n) {
    if (n == 0) return 0;
    if (s[0] < 0x80) return 1;
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n < len) return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if (s[0] == 0xe0 && s[1] < 0xa0) return 0; // overlong
    if (s[0] == 0xed && s[1] > 0x9f) return 0; // surrogate
    if (s[0] == 0xf0 && s[1] < 0x90) return 0; // overlong
    if (s[0] == 0xf4 && s[1] > 0x8f) return 0; // beyond U+10FFFF
    return len;
}

bool utf8_valid(const char *s, size_t n) {
    for (size_t i = 0; i < n;) {
        size_t len = utf8_length((const uint8_t *)s + i, n - i);
        if (len == 0) return false;
        i += len;
    }
    return true;
}

void text_quote(struct text *t, const char *s, size_t n) {
    text_add(t, "\"", 1);
    for (size_t i = 0; i < n;) {
        uint8_t c = (uint8_t)s[i];
        size_t len = utf8_length((const uint8_t *)s + i, n - i);
        if (len == 0) {
            text_add(t, "\xef\xbf\xbd", 3);
            len = 1;
        } else if (c == '"' || c == '\\') {
            text_fmt(t, "\\%c", c);
        } else if (c < 0x20 || c == 0x7f) {
            text_fmt(t, "\\u%04x", c);
        } else {
            text_add(t, s + i, len);
        }
        i += len;
    }
    text_add(t, "\"", 1);
}

void text_base64(struct text *t, const uint8_t *b, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)b[i] << 16 | (i + 1 < n ? (uint32_t)b[i + 1] << 8 : 0) | (i + 2 < n ? b[i + 2] : 0);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], i + 1 < n ? digits[v >> 6 & 63] : '=',
                        i + 2 < n ? digits[v & 63] : '='};
        text_add(t, four, 4);
    }
}
