#include "json.h"

#include <stdlib.h>
#include <string.h>

#include "limits.h"
#include "text.h"

struct reader {
    const char *at, *end;
};

static void skip_space(struct reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}

static bool take(struct reader *r, char c) {
    if (r->at >= r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static bool hex4(struct reader *r, uint32_t *out) {
    *out = 0;
    if (r->end - r->at < 4) return false;
    for (int i = 0; i < 4; i++) {
        char c = *r->at++;
        uint32_t digit;
        if (c >= '0' && c <= '9') digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f') digit = (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F') digit = (uint32_t)(c - 'A' + 10);
        else return false;
        *out = *out << 4 | digit;
    }
    return true;
}

// One character of a string as UTF-8 into out[4]; 0 if it is malformed. The closing quote is not a character.
static size_t next_char(struct reader *r, char out[4]) {
    if (r->at >= r->end) return 0;
    uint8_t c = (uint8_t)*r->at;
    if (c < 0x20 || c == '"') return 0;
    if (c != '\\') {
        size_t n = utf8_length((const uint8_t *)r->at, (size_t)(r->end - r->at));
        memcpy(out, r->at, n);
        r->at += n;
        return n;
    }
    if (r->end - r->at < 2) return 0;
    static const char plain[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    char escape = r->at[1];
    r->at += 2;
    const char *found = escape ? strchr(plain, escape) : NULL;
    if (found) return out[0] = meaning[found - plain], 1;
    uint32_t u, low;
    if (escape != 'u' || !hex4(r, &u)) return 0;
    if (u >= 0xdc00 && u <= 0xdfff) return 0;
    if (u >= 0xd800 && u <= 0xdbff) {
        if (!take(r, '\\') || !take(r, 'u') || !hex4(r, &low) || low < 0xdc00 || low > 0xdfff) return 0;
        u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
    }
    if (u < 0x80) return out[0] = (char)u, 1;
    if (u < 0x800) return out[0] = (char)(0xc0 | u >> 6), out[1] = (char)(0x80 | (u & 63)), 2;
    if (u < 0x10000) {
        out[0] = (char)(0xe0 | u >> 12), out[1] = (char)(0x80 | (u >> 6 & 63)), out[2] = (char)(0x80 | (u & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | u >> 18), out[1] = (char)(0x80 | (u >> 12 & 63));
    out[2] = (char)(0x80 | (u >> 6 & 63)), out[3] = (char)(0x80 | (u & 63));
    return 4;
}

static bool check_string(struct reader *r) {
    char c[4];
    if (!take(r, '"')) return false;
    while (!take(r, '"'))
        if (next_char(r, c) == 0) return false;
    return true;
}

static bool digits(struct reader *r) {
    const char *from = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
    return r->at > from;
}

static bool check_number(struct reader *r) {
    take(r, '-');
    if (!take(r, '0') && !digits(r)) return false;
    if (take(r, '.') && !digits(r)) return false;
    if (take(r, 'e') || take(r, 'E')) {
        if (!take(r, '+')) take(r, '-');
        return digits(r);
    }
    return true;
}

static bool check_word(struct reader *r, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

static bool check_value(struct reader *r, int depth);

static bool check_container(struct reader *r, char close, int depth) {
    if (depth > JSON_DEPTH_MAX) return false;
    r->at++;
    skip_space(r);
    if (take(r, close)) return true;
    do {
        skip_space(r);
        if (close == '}') {
            if (!check_string(r)) return false;
            skip_space(r);
            if (!take(r, ':')) return false;
        }
        if (!check_value(r, depth)) return false;
        skip_space(r);
    } while (take(r, ','));
    return take(r, close);
}

static bool check_value(struct reader *r, int depth) {
    skip_space(r);
    if (r->at >= r->end) return false;
    switch (*r->at) {
    case '{': return check_container(r, '}', depth + 1);
    case '[': return check_container(r, ']', depth + 1);
    case '"': return check_string(r);
    case 't': return check_word(r, "true");
    case 'f': return check_word(r, "false");
    case 'n': return check_word(r, "null");
    default: return check_number(r);
    }
}

bool json_check(const char *text, size_t len, struct json *out) {
    struct reader r = {text, text + len};
    skip_space(&r);
    const char *from = r.at;
    if (!check_value(&r, 0)) return false;
    *out = (struct json){from, (size_t)(r.at - from)};
    skip_space(&r);
    return r.at == r.end;
}

bool json_is(struct json v, char kind) {
    if (v.len == 0) return false;
    char c = *v.at;
    if (kind == 't') return c == 't' || c == 'f';
    if (kind == '0') return c == '-' || (c >= '0' && c <= '9');
    return c == kind;
}

struct json_walk json_open(struct json v) {
    if (!json_is(v, '{') && !json_is(v, '[')) return (struct json_walk){v.at, v.at, true};
    return (struct json_walk){v.at, v.at + v.len, false};
}

// The text is known to be well formed, so skipping only has to count brackets outside strings.
static void skip_value(struct reader *r) {
    int depth = 0;
    do {
        char c = *r->at;
        if (c == '"') {
            for (r->at++; *r->at != '"'; r->at++)
                if (*r->at == '\\') r->at++;
            r->at++;
        } else if (c == '{' || c == '[') {
            depth++, r->at++;
        } else if (c == '}' || c == ']') {
            depth--, r->at++;
        } else if (depth > 0) {
            r->at++;
        } else {
            while (r->at < r->end && !strchr(",]} \t\r\n", *r->at)) r->at++;
        }
    } while (depth > 0 && r->at < r->end);
}

static struct json one_value(struct reader *r) {
    skip_space(r);
    const char *from = r->at;
    skip_value(r);
    return (struct json){from, (size_t)(r->at - from)};
}

bool json_next(struct json_walk *w, struct json *key, struct json *value) {
    if (w->at >= w->end) return false;
    bool object = w->end[-1] == '}';
    struct reader r = {w->at, w->end};
    r.at++; // the opening bracket, or the comma after the previous value
    skip_space(&r);
    if (r.at >= w->end || *r.at == '}' || *r.at == ']') return w->at = w->end, false;
    if (object) {
        *key = one_value(&r);
        skip_space(&r);
        r.at++; // ':'
    }
    *value = one_value(&r);
    skip_space(&r);
    w->at = *r.at == ',' ? r.at : w->end;
    return true;
}

bool json_equals(struct json s, const char *plain) {
    if (!json_is(s, '"')) return false;
    struct reader r = {s.at + 1, s.at + s.len};
    size_t n = strlen(plain);
    while (*r.at != '"') {
        char c[4];
        size_t len = next_char(&r, c);
        if (len == 0 || len > n || memcmp(c, plain, len) != 0) return false;
        plain += len;
        n -= len;
    }
    return n == 0;
}

bool json_get(struct json object, const char *key, struct json *out) {
    if (!json_is(object, '{')) return false;
    struct json_walk w = json_open(object);
    struct json k, v;
    while (json_next(&w, &k, &v)) {
        if (!json_equals(k, key)) continue;
        *out = v;
        return true;
    }
    return false;
}

size_t json_decode(struct json s, char *out) {
    struct reader r = {s.at + 1, s.at + s.len};
    size_t n = 0, len;
    char c[4];
    while (r.at < r.end && *r.at != '"' && (len = next_char(&r, c)) > 0) {
        memcpy(out + n, c, len);
        n += len;
    }
    return n;
}

int64_t json_integer(struct json v) {
    char plain[64];
    size_t n = v.len < sizeof plain - 1 ? v.len : sizeof plain - 1;
    memcpy(plain, v.at, n);
    plain[n] = 0;
    if (strpbrk(plain, ".eE")) {
        double d = strtod(plain, NULL);
        return d >= 9e18 ? INT64_MAX : d <= -9e18 ? INT64_MIN : (int64_t)d;
    }
    return strtoll(plain, NULL, 10); // saturates
}

char *json_string(struct json v) {
    if (!json_is(v, '"')) return NULL;
    char *s = malloc(v.len);
    if (!s) return NULL;
    size_t n = json_decode(v, s);
    s[n] = 0;
    if (memchr(s, 0, n)) return free(s), NULL;
    return s;
}

// null counts as absent: it is what a host's optional field looks like.
static bool present(struct request *r, const char *key, struct json *v) {
    return json_get(r->root, key, v) && !json_is(*v, 'n');
}

static void bad(struct request *r, const char *key) {
    if (!r->bad) r->bad = key;
}

int64_t request_int(struct request *r, const char *key, int64_t absent, int64_t min, int64_t max) {
    struct json v;
    if (!present(r, key, &v)) return absent;
    int64_t n = json_is(v, '0') ? json_integer(v) : 0;
    if (json_is(v, '0') && n >= min && n <= max) return n;
    bad(r, key);
    return absent;
}

bool request_bool(struct request *r, const char *key, bool absent) {
    struct json v;
    if (!present(r, key, &v)) return absent;
    if (!json_is(v, 't')) bad(r, key);
    return *v.at == 't';
}

char *request_string(struct request *r, const char *key) {
    struct json v;
    if (!present(r, key, &v)) return NULL;
    char *s = json_string(v);
    if (!s) bad(r, key);
    return s;
}
