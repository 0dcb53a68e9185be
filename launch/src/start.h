/* What a forked child does to start one sandbox, up to the exec of the OCI runtime. */
#ifndef WARREN_LAUNCH_START_H
#define WARREN_LAUNCH_START_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where the runtime finds its bundle, in the start's own mount namespace: a tmpfs over /run that nobody else sees.
 * /run/config.json, /run/root (the root file system), /run/state (crun's --root), /run/pid. */
#define STAGE "/run"

#define LOWERS_MAX 128
#define OVERLAYS_MAX 4
#define BINDS_MAX 64
#define CGROUPS_MAX 16
#define ARGS_MAX 64
#define LIMITS_MAX 16

struct bind {
	const char *from, *to;
	bool read_only, idmap;
};

struct user_limit {
	const char *name;
	int64_t value;
};

/* Layers and where they come together: the root, or a directory below it. */
struct overlay {
	const char *to; /* NULL: the root */
	const char *lowers[LOWERS_MAX];
	int lower_count;
	const char *upper, *work; /* both or neither; all uppers and works of a start are in one directory */
	bool read_only; /* from the moment all binds are in place; not for the root (config.json says it there) */
};

struct start {
	struct overlay overlays[OVERLAYS_MAX]; /* [0] is the root */
	int overlay_count;
	struct bind binds[BINDS_MAX];
	int bind_count;
	uint32_t map_base, map_size;
	const char *cgroups[CGROUPS_MAX];
	int cgroup_count;
	const char *socket;
	int backlog;
	const char *config;
	size_t config_length;
	char *runtime[ARGS_MAX + 1];
	struct user_limit limits[LIMITS_MAX];
	int limit_count;
	bool idmap; /* false: do not even try (layers) */
	const char *libraries; /* LD_LIBRARY_PATH of the runtime, or NULL */
};

/* Never returns. launcher: as it was before the fork; when it is no longer the parent, all ends. report_fd is a seqpacket socket (close-on-exec). stdin_fd and output_fd become 0, 1 and 2 of the runtime. */
_Noreturn void start_child(const struct start *s, pid_t launcher, int report_fd, int stdin_fd, int output_fd);

#endif
