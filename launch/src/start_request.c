/* From the request of a start to `struct start`. Nothing is copied: the forked child has the strings. */
#define _GNU_SOURCE
#include "start_request.h"
#include "child.h"
#include "outer.h"

#include <limits.h>
#include <string.h>
#include <sys/un.h>

/* Names that overlay options can carry. */
static bool plain_name(const char *path)
{
	return !strpbrk(strrchr(path, '/'), ":,\\\"' \t\n");
}

static bool same_parent(const char *a, const char *b)
{
	size_t n = (size_t)(strrchr(a, '/') - a);
	return strrchr(b, '/') == b + n && strncmp(a, b, n) == 0;
}

static void parse_overlay(struct request *r, struct overlay *o)
{
	for (const struct json *v = want_list(r, "lowers", 1, LOWERS_MAX); v && !r->bad; v = json_next(r->doc, v)) {
		if (!good_path(v))
			bad(r, "lowers", "must be absolute paths");
		o->lowers[o->lower_count++] = v->text;
	}
	o->upper = want_path(r, "upper", true, true);
	o->work = want_path(r, "work", true, true);
	if (!o->upper != !o->work)
		bad(r, "upper", "and work go together");
	if (r->bad || !o->upper)
		return;
	if (strrchr(o->upper, '/') == o->upper || !same_parent(o->upper, o->work) || strcmp(o->upper, o->work) == 0)
		bad(r, "work", "must be beside upper, in the same directory");
	else if (!plain_name(o->upper) || !plain_name(o->work))
		bad(r, "upper", "or work has a name that overlay options cannot carry");
}

static void parse_overlays(struct request *r, struct start *s)
{
	parse_overlay(r, &s->overlays[s->overlay_count++]);
	const char *writable = s->overlays[0].upper;
	for (const struct json *v = want_list(r, "overlays", 0, OVERLAYS_MAX - 1); v && !r->bad; v = json_next(r->doc, v)) {
		struct overlay *o = &s->overlays[s->overlay_count++];
		struct request more = {.doc = r->doc, .at = v};
		o->to = want_path(&more, "to", false, false);
		o->read_only = want_flag(&more, "readOnly", false);
		parse_overlay(&more, o);
		if (!more.bad && o->upper && writable && !same_parent(o->upper, writable))
			bad(&more, "upper", "of every overlay must be in one directory");
		if (!more.bad && o->upper)
			writable = o->upper;
		if (more.bad)
			bad(r, "overlays:", more.why);
	}
}

static void parse_binds(struct request *r, struct start *s)
{
	for (const struct json *v = want_list(r, "binds", 0, BINDS_MAX); v && !r->bad; v = json_next(r->doc, v)) {
		struct request one = {.doc = r->doc, .at = v};
		const char *from = want_path(&one, "from", false, false), *to = want_path(&one, "to", false, false);
		s->binds[s->bind_count++] = (struct bind){from, to, want_flag(&one, "readOnly", true), want_flag(&one, "idmap", true)};
		if (one.bad)
			bad(r, "binds:", one.why);
	}
}

static void parse_map(struct request *r, struct start *s)
{
	struct request m = {.doc = r->doc, .at = want(r, "map")};
	if (!m.at || m.at->type != JSON_OBJECT) {
		bad(r, "map", "is missing");
		return;
	}
	/* Never the host's own users: the range begins above 65535. Without root 0 is the user, and all others are theirs. */
	s->map_base = (uint32_t)want_number(&m, "base", outer_is() ? 1 : 65536, 4294901759, 0);
	s->map_size = (uint32_t)want_number(&m, "size", 1, 1u << 24, 65536);
	if (m.bad || (uint64_t)s->map_base + s->map_size > 4294967295u)
		bad(r, "map", "is out of range");
}

static void parse_runtime(struct request *r, struct start *s)
{
	int n = 0;
	for (const struct json *v = want_list(r, "runtime", 1, ARGS_MAX); v && !r->bad; v = json_next(r->doc, v)) {
		if (v->type != JSON_STRING || v->length > 4000 || (n == 0 && !good_path(v)))
			bad(r, "runtime", "must be an absolute path and its arguments");
		s->runtime[n++] = v->text;
	}
	s->libraries = want_path(r, "libraries", true, false);
	const struct json *config = want(r, "config");
	if (!config || config->type != JSON_STRING || config->length < 2)
		bad(r, "config", "must be the text of config.json");
	else
		s->config = config->text, s->config_length = config->length;
}

static void parse_limits(struct request *r, struct start *s)
{
	const struct json *limits = want(r, "userLimits");
	if (limits && (limits->type != JSON_OBJECT || limits->count > LIMITS_MAX))
		bad(r, "userLimits", "must be a small object");
	for (const struct json *key = limits && !r->bad ? json_child(r->doc, limits) : NULL; key && !r->bad; key = json_next(r->doc, key)) {
		const struct json *v = &r->doc->node[key->first];
		bool named = strncmp(key->text, "max_", 4) == 0 && key->length <= 40 && strspn(key->text, "abcdefghijklmnopqrstuvwxyz_") == key->length;
		if (!named || v->type != JSON_NUMBER || v->number < 0 || v->number > INT_MAX)
			bad(r, "userLimits", "holds a name or a number that is not allowed");
		s->limits[s->limit_count++] = (struct user_limit){key->text, v->number};
	}
}

void on_start(struct request *r)
{
	static struct start s;
	memset(&s, 0, sizeof s);
	parse_overlays(r, &s);
	parse_binds(r, &s);
	parse_map(r, &s);
	parse_runtime(r, &s);
	parse_limits(r, &s);
	s.cgroup_count = want_cgroups(r, s.cgroups);
	s.socket = want_path(r, "socket", false, true);
	if (!r->bad && strlen(s.socket) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		bad(r, "socket", "is longer than 107 bytes");
	s.backlog = (int)want_number(r, "backlog", 1, 4096, 512);
	s.idmap = want_flag(r, "idmap", true);
	int64_t timeout = want_number(r, "timeoutMs", 1, 600000, 10000);
	struct job *j = request_good(r) ? job_new(START, "runtime", r->id, timeout, s.cgroups, s.cgroup_count) : NULL;
	if (j)
		child_start(j, &s);
}
