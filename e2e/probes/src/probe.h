// Attempts to get out of a sandbox. Each is made in a process of its own and does no harm where it succeeds.
#pragma once
#include <stddef.h>

enum { OPEN = 0, ABSENT = -1 }; // Anything above is the errno that shut it.

struct attempt {
    const char *id; // `group.name`
    int (*make)(const struct attempt *);
    const char *path;
    long number;
    long args[6];
};

struct attempts {
    const struct attempt *attempts;
    size_t count;
};

#define GROUP(name, table) const struct attempts name = {table, sizeof table / sizeof *table}

extern const struct attempts identity, calls, sockets, mounts, paths, devices, limits, neighbours, entries;

// The descriptor by which an attempt answers: the only one that is ours.
extern int answer_by;
// A word more about the attempt that is being made.
void detail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// What the caller said as `name=value`; NULL when it did not.
const char *told(const char *name);
// OPEN when the host's namespace of a kind, `told` under its name, is ours.
int shares_with_host(const char *kind);
// Root where an attempt would be no attempt but an accident.
int is_hosts_root(const char *kind);
// OPEN unless the error says that the call itself is refused: its arguments make no sense on purpose.
int reached(long result);
// OPEN only if it was carried out.
int carried_out(long result);
// An address that no system call can read.
#define BAD ((long)1)

int hold_canaries(const char *mark);
int tell_filter(void);
int find_residue(void);
int plant_residue(const char *mark);
