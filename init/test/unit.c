// Unit tests of the pure parts. Prints a count; the exit code says whether all held.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caps.h"
#include "config.h"
#include "frame.h"
#include "json.h"
#include "limits.h"
#include "ring.h"
#include "text.h"
#include "user.h"

static int checks, failures;

#define CHECK(what)                                                            \
    do {                                                                       \
        checks++;                                                              \
        if (!(what)) failures++, printf("%s:%d: %s\n", __FILE__, __LINE__, #what); \
    } while (0)

// user.c asks these; the tests decide.
struct config config = {.uid = 1000, .gid = 1000, .dev = true};
bool caps_can_become(void) { return true; }

// A copy without anything behind it, so that the address sanitizer sees every byte read too far.
static struct json parse(const char *text, char **copy, bool *good) {
    size_t n = strlen(text);
    *copy = malloc(n ? n : 1);
    memcpy(*copy, text, n);
    struct json v = {0};
    *good = json_check(*copy, n, &v);
    return v;
}

static bool valid(const char *text) {
    char *copy;
    bool good;
    parse(text, &copy, &good);
    free(copy);
    return good;
}

static void frames(void) {
    struct frame f;
    uint8_t json[] = {0, 0, 0, 2, '{', '}', 0, 0, 0, 3, 1, 'a', 'b'};
    CHECK(frame_read(json, 0, &f) == FRAME_MORE);
    for (size_t n = 0; n < 6; n++) CHECK(frame_read(json, n, &f) == FRAME_MORE);
    CHECK(frame_read(json, sizeof json, &f) == FRAME_READY && f.tag == TAG_JSON && f.len == 2 && f.used == 6);
    CHECK(frame_read(json + 6, 7, &f) == FRAME_READY && f.tag == TAG_STDIN && f.len == 2 && f.data[0] == 'a' && f.used == 7);
    CHECK(frame_read((uint8_t[]){0, 0, 0, 0}, 4, &f) == FRAME_BAD && strcmp(f.code, "invalid") == 0);
    CHECK(frame_read((uint8_t[]){255, 255, 255, 255}, 4, &f) == FRAME_BAD && strcmp(f.code, "limit") == 0);
    CHECK(frame_read((uint8_t[]){0, 0x10, 0, 0, '{'}, 5, &f) == FRAME_MORE && f.wanted == 4 + JSON_FRAME_MAX);
    CHECK(frame_read((uint8_t[]){0, 0x10, 0, 1, '{'}, 5, &f) == FRAME_BAD);
    CHECK(frame_read((uint8_t[]){0, 4, 0, 0, 1}, 5, &f) == FRAME_MORE && f.wanted == 4 + STREAM_FRAME_MAX);
    CHECK(frame_read((uint8_t[]){0, 4, 0, 1, 1}, 5, &f) == FRAME_BAD && strcmp(f.code, "limit") == 0);
    CHECK(frame_read((uint8_t[]){0, 0, 0, 1, 0}, 5, &f) == FRAME_BAD);
    CHECK(frame_read((uint8_t[]){0, 0, 0, 1, 5}, 5, &f) == FRAME_BAD);
    CHECK(frame_read((uint8_t[]){0, 0, 0, 1, '['}, 5, &f) == FRAME_BAD);
    CHECK(frame_read((uint8_t[]){0, 0, 0, 1, 1}, 5, &f) == FRAME_READY && f.len == 0);
    uint8_t head[5];
    frame_header(head, TAG_STDOUT, 0x01020303);
    CHECK(head[0] == 1 && head[1] == 2 && head[2] == 3 && head[3] == 4 && head[4] == 2);
}

static void json_syntax(void) {
    static const char *const good[] = {
        "{}", "[]", " { \"a\" : [ 1 , -2.5e+3 , true , false , null , \"\" ] } ", "0", "-0", "\"\\u00e9\\ud83d\\ude00\"",
        "\"\xc3\xa9\xf0\x9f\x98\x80\"", "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]", "{\"__proto__\":{\"a\":1}}", "1e400"};
    static const char *const bad[] = {
        "", " ", "{", "}", "[", "[1", "[1,", "[,]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{'a':1}", "01", "1.", ".5", "+1",
        "-", "1e", "tru", "nul", "truex", "\"", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"",
        "\"\x01\"", "\"\x80\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", "{} {}", "[1] x",
        "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "{\"a\":1 \"b\":2}", "[1 2]", "nan", "Infinity", "// x\n1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) CHECK(valid(good[i]) || !printf("  %s\n", good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(!valid(bad[i]) || !printf("  %s\n", bad[i]));
}

static void json_values(void) {
    char *copy;
    bool good;
    struct json root = parse("{\"op\":\"a\",\"op\":\"b\",\"n\":12.9,\"big\":99999999999999999999,\"e\":1.5e3,\"neg\":-7,\"t\":true,"
                             "\"s\":\"x\\u0000y\",\"u\":\"\\u00e9\\n\",\"list\":[1,\"]\",{\"k\":\"}\"},[]],\"\\u006fk\":1,\"null\":null}",
                             &copy, &good);
    CHECK(good);
    struct json v, k;
    struct request r = {.root = root};
    CHECK(json_get(root, "op", &v) && json_equals(v, "a") && !json_equals(v, "ab") && !json_equals(v, ""));
    CHECK(request_int(&r, "n", 0, 0, 100) == 12 && !r.bad);
    CHECK(request_int(&r, "neg", 0, -10, 100) == -7 && !r.bad);
    CHECK(request_int(&r, "e", 0, 0, 10000) == 1500 && !r.bad);
    CHECK(request_int(&r, "absent", 5, 0, 1) == 5 && !r.bad);
    CHECK(request_int(&r, "null", 5, 0, 1) == 5 && !r.bad);
    CHECK(request_int(&r, "big", 0, 0, INT64_MAX) == INT64_MAX && !r.bad);
    CHECK(request_int(&r, "ok", 0, 0, 1) == 1 && !r.bad);
    CHECK(request_bool(&r, "t", false) && !request_bool(&r, "absent", false) && !r.bad);
    request_string(&r, "s");
    CHECK(r.bad && strcmp(r.bad, "s") == 0);
    r.bad = NULL;
    char *u = request_string(&r, "u");
    CHECK(u && strcmp(u, "\xc3\xa9\n") == 0);
    free(u);
    CHECK(request_int(&r, "op", 1, 0, 9) == 1 && r.bad);
    r.bad = NULL;
    CHECK(request_int(&r, "n", 1, 0, 11) == 1 && r.bad);
    CHECK(json_get(root, "list", &v));
    struct json_walk w = json_open(v);
    int n = 0;
    while (json_next(&w, &k, &v)) n++;
    CHECK(n == 4);
    w = json_open((struct json){"{}", 2});
    CHECK(!json_next(&w, &k, &v));
    w = json_open((struct json){"[ ]", 3});
    CHECK(!json_next(&w, &k, &v));
    free(copy);
}

static void texts(void) {
    struct text t = {0};
    text_quote(&t, "a\"\\\n\x7f\xff\xc3\xa9", 8);
    text_add(&t, "", 1);
    CHECK(strcmp(t.data, "\"a\\\"\\\\\\u000a\\u007f\xef\xbf\xbd\xc3\xa9\"") == 0);
    text_free(&t);
    text_base64(&t, (const uint8_t *)"any carnal pleas", 16);
    text_add(&t, "", 1);
    CHECK(strcmp(t.data, "YW55IGNhcm5hbCBwbGVhcw==") == 0);
    text_free(&t);
    char big[2000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    text_fmt(&t, "%s|", big);
    CHECK(t.len == sizeof big);
    text_free(&t);
}

static void rings(void) {
    struct ring r = {.max = 10};
    const uint8_t *p;
    uint8_t tag;
    CHECK(ring_peek(&r, 0, &p, &tag, 100) == 0);
    ring_put(&r, 2, (const uint8_t *)"abcde", 5);
    ring_put(&r, 3, (const uint8_t *)"fghij", 5);
    CHECK(r.from == 0 && r.to == 10 && r.room == 10); // exactly full, nothing lost
    CHECK(ring_peek(&r, 0, &p, &tag, 100) == 5 && tag == 2 && memcmp(p, "abcde", 5) == 0);
    CHECK(ring_peek(&r, 5, &p, &tag, 3) == 3 && tag == 3 && memcmp(p, "fgh", 3) == 0);
    CHECK(ring_peek(&r, 10, &p, &tag, 3) == 0);
    ring_put(&r, 3, (const uint8_t *)"k", 1); // one too many
    CHECK(r.from == 1 && r.to == 11);
    CHECK(ring_peek(&r, 1, &p, &tag, 100) == 4 && tag == 2 && memcmp(p, "bcde", 4) == 0);
    CHECK(ring_peek(&r, 10, &p, &tag, 100) == 1 && *p == 'k' && tag == 3);
    ring_put(&r, 2, (const uint8_t *)"0123456789ABCDEF", 16); // more than all of it
    CHECK(r.to == 27 && r.from == 17 && ring_peek(&r, 17, &p, &tag, 3) == 3 && memcmp(p, "678", 3) == 0);
    ring_free(&r);
    CHECK(ring_total() == 0);

    struct ring none = {.max = 0};
    ring_put(&none, 2, (const uint8_t *)"abc", 3);
    CHECK(none.from == 3 && none.to == 3);
    ring_free(&none);

    // Growth keeps the order: compare with a plain array.
    struct ring big = {.max = 50000};
    uint8_t *all = malloc(200000), chunk[977];
    size_t total = 0;
    srand(7);
    while (total + sizeof chunk < 200000) {
        size_t n = (size_t)rand() % sizeof chunk;
        for (size_t i = 0; i < n; i++) chunk[i] = all[total + i] = (uint8_t)rand();
        ring_put(&big, (uint8_t)(2 + total % 2), chunk, n);
        total += n;
        CHECK(big.to == total && big.to - big.from <= 50000);
    }
    bool same = true;
    for (uint64_t at = big.from; at < big.to;) {
        size_t n = ring_peek(&big, at, &p, &tag, 1000);
        same = same && n > 0 && memcmp(p, all + at, n) == 0;
        at += n ? n : 1;
    }
    CHECK(same && big.to - big.from == 50000);
    // Streams that alternate with every byte are bounded, too.
    for (int i = 0; i < 100000; i++) ring_put(&big, (uint8_t)(2 + i % 2), (const uint8_t *)"x", 1);
    CHECK(big.runCount <= REPLAY_RUNS_MAX && ring_peek(&big, big.from, &p, &tag, 10) > 0);
    free(all);
    ring_free(&big);
    CHECK(ring_total() == 0);
}

static void users(void) {
    uid_t u;
    gid_t g;
    bool has;
    CHECK(user_digits("1000", &u, &g, &has) && u == 1000 && g == 1000 && !has);
    CHECK(user_digits("0:5", &u, &g, &has) && u == 0 && g == 5 && has);
    CHECK(user_digits("4294967294", &u, &g, &has));
    static const char *const bad[] = {"", ":", "1:", ":1", "-1", "1 ", "1:2:3", "4294967295", "99999999999", "0x1", "a", "+1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(!user_digits(bad[i], &u, &g, &has));

    const char text[] = "root:x:0:0:root:/root:/bin/bash\n#c\nbroken:x:1\n\nnode:x:1001:1002:N,,:/home/node:/bin/zsh\n"
                        ":x:7:7::/:/\nbad:x:-1:1::/:/\nlast:x:9:9::/l:/bin/l";
    struct user who = {0};
    CHECK(passwd_find(text, sizeof text - 1, "node", 0, &who) && who.uid == 1001 && who.gid == 1002);
    CHECK(strcmp(who.home, "/home/node") == 0 && strcmp(who.shell, "/bin/zsh") == 0 && strcmp(who.name, "node") == 0);
    CHECK(passwd_find(text, sizeof text - 1, NULL, 0, &who) && strcmp(who.name, "root") == 0);
    CHECK(passwd_find(text, sizeof text - 1, "last", 0, &who) && strcmp(who.shell, "/bin/l") == 0);
    CHECK(!passwd_find(text, sizeof text - 1, "nod", 0, &who) && !passwd_find(text, sizeof text - 1, "nodee", 0, &who));
    CHECK(!passwd_find(text, sizeof text - 1, "broken", 0, &who) && !passwd_find(text, sizeof text - 1, "bad", 0, &who));
    CHECK(!passwd_find(text, sizeof text - 1, NULL, 7, &who) && !passwd_find("", 0, "x", 0, &who));
    CHECK(user_find("0", &who) == USER_OK && who.uid == 0);
    config.dev = false;
    CHECK(user_find("root", &who) == USER_FORBIDDEN && user_find("0", &who) == USER_FORBIDDEN);
    CHECK(user_find("0:1000", &who) == USER_FORBIDDEN && user_find("1000:0", &who) == USER_FORBIDDEN);
    CHECK(user_find("no-such-user-here", &who) == USER_UNKNOWN);
    CHECK(user_find(NULL, &who) == USER_OK && who.uid == 1000);
    CHECK(geteuid() == 0 || user_find("65533", &who) == USER_OK);
}

int main(void) {
    frames();
    json_syntax();
    json_values();
    texts();
    rings();
    users();
    printf("%d checks, %d failed\n", checks, failures);
    return failures != 0;
}
