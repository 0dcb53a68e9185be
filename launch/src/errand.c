#define _GNU_SOURCE
#include "errand.h"
#include "child.h"
#include "copy.h"
#include "layer.h"
#include "network.h"
#include "remove.h"
#include "tree.h"

#include <string.h>

enum { BYTES = 1, SNAPSHOT = 2, FOLDERS = 4, LINE = 8, CONNECT = 16, COPY = 32 };

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
	{"folders", "folders", tree_folders, FOLDERS},
	{"usage", "usage", tree_usage, 0},
	{"copy", "copy", copy_tree, COPY},
	{"network.connect", "network", network_connect, LINE | CONNECT},
	{"network.disconnect", "network", network_disconnect, LINE},
};

#define ID_MAX 4294901759

static void parse_folders(struct request *r, struct errand *e)
{
	e->base = (uint32_t)want_number(r, "base", 0, ID_MAX, -1);
	for (const struct json *v = want_list(r, "folders", 1, FOLDERS_MAX); v && !r->bad; v = json_next(r->doc, v)) {
		struct request one = {.doc = r->doc, .at = v};
		const char *path = want_path(&one, "path", false, false);
		uint32_t mode = (uint32_t)want_number(&one, "mode", 0, 01777, -1);
		uint32_t owner = (uint32_t)want_number(&one, "owner", 0, 65535, -1);
		e->folders[e->folder_count++] = (struct folder){path, mode, owner};
		if (one.bad)
			bad(r, "folders:", one.why);
	}
}

/* Without: owners stay. */
static void parse_ids(struct request *r, struct errand *e)
{
	e->base = (uint32_t)want_number(r, "base", 0, ID_MAX, 0);
	e->to_base = (uint32_t)want_number(r, "toBase", 0, ID_MAX, 0);
	if (!e->base != !e->to_base)
		bad(r, "base", "and toBase go together");
}

bool on_errand(struct request *r, const char *op)
{
	for (size_t i = 0; i < sizeof errands / sizeof *errands; i++) {
		if (strcmp(op, errands[i].op) != 0)
			continue;
		unsigned fields = errands[i].fields;
		static struct errand e;
		e = (struct errand){.run = errands[i].run};
		if (fields & LINE)
			network_parse(r, &e, fields & CONNECT);
		else
			e.path = want_path(r, fields & (SNAPSHOT | COPY) ? "to" : "path", false, true);
		if (fields & (SNAPSHOT | COPY))
			e.from = want_path(r, "from", false, true);
		if (fields & COPY)
			parse_ids(r, &e);
		if (fields & SNAPSHOT)
			e.read_only = want_flag(r, "readOnly", false);
		if (fields & BYTES) /* required: a layer without a limit is asked for, with 0 */
			e.bytes_max = (uint64_t)want_number(r, "bytesMax", 0, 9007199254740991, -1);
		if (fields & FOLDERS)
			parse_folders(r, &e);
		int64_t timeout = want_number(r, "timeoutMs", 1, 3600000, 600000);
		struct job *j = request_good(r) ? job_new(ERRAND, errands[i].step, r->id, timeout, NULL, 0) : NULL;
		if (j)
			child_errand(j, &e);
		return true;
	}
	return false;
}
