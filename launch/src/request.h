/* One request: its fields, wanted one by one. The first that is wrong is what the fault says. */
#ifndef WARREN_LAUNCH_REQUEST_H
#define WARREN_LAUNCH_REQUEST_H

#include "json.h"
#include "start.h"

struct request {
	const struct json_doc *doc;
	const struct json *at; /* an object */
	int64_t id;
	bool bad;
	char why[120];
};

/* The directories everything that is written or deleted must be below of. False: not usable, or too many. */
bool request_add_root(char *path);
/* The longest of them that the path is strictly below, or NULL. */
const char *root_of(const char *path);

void bad(struct request *r, const char *name, const char *why);
/* False: it was bad, and the fault is sent. */
bool request_good(const struct request *r);

const struct json *want(const struct request *r, const char *name);
/* Absolute, normal (no empty, "." or ".." part), bounded; ours: below a root. */
const char *want_path(struct request *r, const char *name, bool optional, bool ours);
/* missing < low: it must be there. */
int64_t want_number(struct request *r, const char *name, int64_t low, int64_t high, int64_t missing);
bool want_flag(struct request *r, const char *name, bool missing);
const char *want_ticks(struct request *r);
/* The first of low to high elements; NULL: none, or bad. */
const struct json *want_list(struct request *r, const char *name, int low, int high);
int want_cgroups(struct request *r, const char *list[CGROUPS_MAX]);
bool good_path(const struct json *v);

#endif
