/* Things done in a forked child because they may take long: to one path below a --root (remove, volume.*, layer.*, folders, usage, copy), or to
 * the network of one sandbox (network.*). */
#ifndef WARREN_LAUNCH_ERRAND_H
#define WARREN_LAUNCH_ERRAND_H

#include "request.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FOLDERS_MAX 256
#define RESOLVERS_MAX 16

struct folder {
	const char *path; /* below the errand's */
	uint32_t mode, owner;
};

/* The cable of a sandbox. Addresses are in network order. */
struct line {
	const char *device, *table; /* table: of the rules */
	uint32_t resolvers[RESOLVERS_MAX];
	int resolver_count;
	/* network.connect */
	pid_t pid;
	const char *ticks;
	uint32_t gateway, address;
};

struct errand {
	void (*run)(const struct errand *e); /* returns when all is well; may report an answer before */
	const char *path, *from; /* from: of a snapshot or a copy */
	uint64_t bytes_max;
	bool read_only;
	uint32_t base;    /* folders: added to every owner; copy: the first of the ids that become */
	uint32_t to_base; /* those from here on */
	/* folders */
	struct folder folders[FOLDERS_MAX];
	int folder_count;
	struct line line;
};

/* Answers the request if its op is one of these. */
bool on_errand(struct request *r, const char *op);

#endif
