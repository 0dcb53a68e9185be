#define _GNU_SOURCE
#include "errand.h"
#include "child.h"
#include "layer.h"
#include "remove.h"

#include <string.h>

enum { BYTES = 1, SNAPSHOT = 2 };

static const struct {
	const char *op, *step;
	void (*run)(const struct errand *e);
	unsigned fields;
} errands[] = {
	{"remove", "remove", remove_tree, 0},
	{"volume.open", "volume", volume_open, 0},
	{"layer.create", "layer", layer_create, BYTES},
	{"layer.limit", "layer", layer_limit, BYTES},
	{"layer.usage", "layer", layer_usage, 0},
	{"layer.snapshot", "layer", layer_snapshot, BYTES | SNAPSHOT},
	{"layer.remove", "layer", layer_remove, 0},
};

bool on_errand(struct request *r, const char *op)
{
	for (size_t i = 0; i < sizeof errands / sizeof *errands; i++) {
		if (strcmp(op, errands[i].op) != 0)
			continue;
		unsigned fields = errands[i].fields;
		struct errand e = {.run = errands[i].run};
		e.path = want_path(r, fields & SNAPSHOT ? "to" : "path", false, true);
		if (fields & SNAPSHOT) {
			e.from = want_path(r, "from", false, true);
			e.read_only = want_flag(r, "readOnly", false);
		}
		if (fields & BYTES) /* required: a layer without a limit is asked for, with 0 */
			e.bytes_max = (uint64_t)want_number(r, "bytesMax", 0, 9007199254740991, -1);
		int64_t timeout = want_number(r, "timeoutMs", 1, 3600000, 600000);
		struct job *j = request_good(r) ? job_new(ERRAND, errands[i].step, r->id, timeout, NULL, 0) : NULL;
		if (j)
			child_errand(j, &e);
		return true;
	}
	return false;
}
