/* Things done to one path below a --root, in a forked child because they may take long: remove, volume.*, layer.*, folders, usage. */
#ifndef WARREN_LAUNCH_ERRAND_H
#define WARREN_LAUNCH_ERRAND_H

#include "request.h"

#include <stdbool.h>
#include <stdint.h>

#define FOLDERS_MAX 256

struct folder {
	const char *path; /* below the errand's */
	uint32_t mode, owner;
};

struct errand {
	void (*run)(const struct errand *e); /* returns when all is well; may report an answer before */
	const char *path, *from; /* from: of a snapshot */
	uint64_t bytes_max;
	bool read_only;
	/* folders */
	uint32_t base; /* added to every owner */
	struct folder folders[FOLDERS_MAX];
	int folder_count;
};

/* Answers the request if its op is one of these. */
bool on_errand(struct request *r, const char *op);

#endif
