// probe [name=value…]: makes every attempt and prints `id|group|OPEN|SHUT|ABSENT|HUNG|detail`.
// probe --filter: prints for every system call which error a filter answers it with; 0 is none.
// probe --residue: counts what somebody before us left. probe --plant MARK: leaves it.
// probe --canaries MARK: holds what nobody in a sandbox should find, says where it is, and ends with stdin.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "probe.h"

enum { PATIENCE_MS = 20000 };

struct answer {
    int result;
    char detail[160];
};

static struct answer answer;
int answer_by;
static char **words;

void detail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(answer.detail, sizeof answer.detail, format, list);
    va_end(list);
}

const char *told(const char *name) {
    size_t length = strlen(name);
    for (char **word = words; *word; word++)
        if (strncmp(*word, name, length) == 0 && (*word)[length] == '=') return *word + length + 1;
    return NULL;
}

int reached(long result) {
    if (result >= 0) return OPEN;
    if (errno == EPERM || errno == ENOSYS || errno == EACCES || errno == EAFNOSUPPORT || errno == ENOSPC) return errno;
    detail("error %d", errno);
    return OPEN;
}

int carried_out(long result) { return result >= 0 ? OPEN : errno; }

static void try_it(const struct attempt *a, int out) {
    // Without a terminal: what hangs up or steals one finds none.
    setsid();
    answer_by = out;
    answer.result = a->make(a);
    if (write(out, &answer, sizeof answer) != sizeof answer) _exit(1);
    _exit(0);
}

// A child that died without a word was ended by the kernel; one that says nothing at all is ended by us.
static const char *verdict(const struct attempt *a) {
    int ends[2], status;
    memset(&answer, 0, sizeof answer);
    if (pipe(ends) != 0) return "HUNG";
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        try_it(a, ends[1]);
    }
    close(ends[1]);
    struct pollfd ready = {.fd = ends[0], .events = POLLIN};
    int is_ready = poll(&ready, 1, PATIENCE_MS) == 1;
    ssize_t got = is_ready ? read(ends[0], &answer, sizeof answer) : 0;
    close(ends[0]);
    if (!is_ready) kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (!is_ready) return "HUNG";
    if (got != sizeof answer) {
        detail("signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        return "SHUT";
    }
    if (answer.result == ABSENT) return "ABSENT";
    if (answer.result == OPEN) return "OPEN";
    if (answer.detail[0] == 0) detail("error %d", answer.result);
    return "SHUT";
}

static void run(const struct attempts *group) {
    for (size_t i = 0; i < group->count; i++) {
        const struct attempt *a = &group->attempts[i];
        const char *word = verdict(a);
        printf("%s|%.*s|%s|%s\n", a->id, (int)strcspn(a->id, "."), a->id, word, answer.detail);
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--canaries") == 0) return hold_canaries(argv[2]);
    if (argc == 2 && strcmp(argv[1], "--filter") == 0) return tell_filter();
    if (argc == 2 && strcmp(argv[1], "--residue") == 0) return find_residue();
    if (argc == 3 && strcmp(argv[1], "--plant") == 0) return plant_residue(argv[2]);
    words = argv + 1;
    const struct attempts *all[] = {&identity, &calls, &sockets, &mounts, &paths, &devices, &limits, &neighbours, &entries};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) run(all[i]);
    printf("end|end|SHUT|\n");
    return 0;
}
