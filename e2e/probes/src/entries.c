// Other ways into the kernel than the one a filter is usually written for: int 0x80 and x32.
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>
#include "probe.h"

#ifdef __x86_64__
static int int80(const struct attempt *a) {
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(a->number), "b"(a->args[0]), "c"(a->args[1]), "d"(a->args[2])
                     : "memory", "r8", "r9", "r10", "r11");
    if (result < 0) errno = (int)-result;
    return reached(result < 0 ? -1 : result);
}

static int x32(const struct attempt *a) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(0x40000000L | a->number), "D"(a->args[0]), "S"(a->args[1]), "d"(a->args[2])
                     : "memory", "rcx", "r11");
    if (result < 0) errno = (int)-result;
    return reached(result < 0 ? -1 : result);
}
#else
static int int80(const struct attempt *a) { (void)a; return ABSENT; }
static int x32(const struct attempt *a) { (void)a; return ABSENT; }
#endif

static const struct attempt table[] = {
    {.id = "entry.int80_getpid", .make = int80, .number = 20},
    {.id = "entry.int80_unshare_user", .make = int80, .number = 310, .args = {0x10000000}},
    {.id = "entry.int80_mount", .make = int80, .number = 21, .args = {BAD, BAD, BAD}},
    {.id = "entry.int80_socketcall", .make = int80, .number = 102, .args = {1, BAD}},
    {.id = "entry.int80_socket", .make = int80, .number = 359, .args = {40, 15, 0}},
    {.id = "entry.int80_keyctl", .make = int80, .number = 288, .args = {0, -3, 0}},
    {.id = "entry.int80_bpf", .make = int80, .number = 357, .args = {99, BAD, 0}},
    {.id = "entry.int80_io_uring", .make = int80, .number = 425, .args = {0, BAD}},
    {.id = "entry.int80_ptrace", .make = int80, .number = 26, .args = {0, 0, 0}},
    {.id = "entry.x32_getpid", .make = x32, .number = 39},
    {.id = "entry.x32_unshare", .make = x32, .number = 272, .args = {0x10000000}},
    {.id = "entry.x32_keyctl", .make = x32, .number = 250, .args = {0, -3, 0}},
};
GROUP(entries, table);
