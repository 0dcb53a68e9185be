#define _GNU_SOURCE
#include "request.h"
#include "out.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ROOTS_MAX 8

static const char *roots[ROOTS_MAX];
static int root_count;

bool good_path(const struct json *v)
{
	if (!v || v->type != JSON_STRING || v->length < 2 || v->length > 4000 || v->text[0] != '/')
		return false;
	for (const char *p = v->text; *p;) {
		size_t n = strcspn(++p, "/");
		if (n == 0 || n > 255 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += n;
	}
	return true;
}

static bool below(const char *path, const char *root)
{
	size_t n = strlen(root);
	return strncmp(path, root, n) == 0 && path[n] == '/';
}

bool request_add_root(char *path)
{
	struct json v = {.type = JSON_STRING, .text = path, .length = strlen(path)};
	if (!good_path(&v) || root_count == ROOTS_MAX)
		return false;
	roots[root_count++] = path;
	return true;
}

const char *root_of(const char *path)
{
	const char *best = NULL;
	for (int i = 0; i < root_count; i++)
		if (below(path, roots[i]) && (!best || strlen(roots[i]) > strlen(best)))
			best = roots[i];
	return best;
}

void bad(struct request *r, const char *name, const char *why)
{
	if (!r->bad)
		snprintf(r->why, sizeof r->why, "%.30s %.80s", name, why);
	r->bad = true;
}

bool request_good(const struct request *r)
{
	if (r->bad)
		answer_fault(r->id, "request", EINVAL, r->why, NULL, 0);
	return !r->bad;
}

const struct json *want(const struct request *r, const char *name)
{
	return json_get(r->doc, r->at, name);
}

const char *want_path(struct request *r, const char *name, bool optional, bool ours)
{
	const struct json *v = want(r, name);
	if (optional && (!v || v->type == JSON_NULL))
		return NULL;
	if (!good_path(v))
		return bad(r, name, "must be an absolute path without . and .."), NULL;
	if (ours && !root_of(v->text))
		return bad(r, name, "is not below a --root"), NULL;
	return v->text;
}

int64_t want_number(struct request *r, const char *name, int64_t low, int64_t high, int64_t missing)
{
	const struct json *v = want(r, name);
	if (!v && missing >= low)
		return missing;
	if (!v || v->type != JSON_NUMBER || v->number < low || v->number > high)
		return bad(r, name, "is missing or out of range"), low;
	return v->number;
}

const char *want_ticks(struct request *r)
{
	const struct json *v = want(r, "startTicks");
	if (!v || v->type != JSON_STRING || v->length < 1 || v->length > 20 || strspn(v->text, "0123456789") != v->length)
		return bad(r, "startTicks", "must be digits"), "";
	return v->text;
}

bool want_flag(struct request *r, const char *name, bool missing)
{
	const struct json *v = want(r, name);
	if (v && v->type != JSON_TRUE && v->type != JSON_FALSE)
		bad(r, name, "must be true or false");
	return v ? v->type == JSON_TRUE : missing;
}

const struct json *want_list(struct request *r, const char *name, int low, int high)
{
	const struct json *v = want(r, name);
	if (!v && low == 0)
		return NULL;
	if (!v || v->type != JSON_ARRAY || v->count < low || v->count > high)
		return bad(r, name, "must be a list of allowed length"), NULL;
	return json_child(r->doc, v);
}

/* At least two names below the hierarchy: a runner's own cgroup, never a whole hierarchy. */
int want_cgroups(struct request *r, const char *list[CGROUPS_MAX])
{
	int n = 0;
	for (const struct json *v = want_list(r, "cgroups", 0, CGROUPS_MAX); v && !r->bad; v = json_next(r->doc, v)) {
		int parts = 0;
		if (!good_path(v) || !below(v->text, "/sys/fs/cgroup")) {
			bad(r, "cgroups", "must be paths below /sys/fs/cgroup");
			break;
		}
		for (const char *p = v->text + strlen("/sys/fs/cgroup"); *p; p++)
			parts += *p == '/';
		if (parts < 2)
			bad(r, "cgroups", "must be at least two levels below /sys/fs/cgroup");
		list[n++] = v->text;
	}
	return n;
}
