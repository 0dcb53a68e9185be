#define _GNU_SOURCE
#include "input.h"
#include "errand.h"
#include "job.h"
#include "kill.h"
#include "loop.h"
#include "out.h"
#include "start_request.h"
#include "watch.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define VERSION 1
#define FRAME_MAX (1u << 20)

static char input[FRAME_MAX + 8];
static size_t used;

static void on_hello(struct request *r)
{
	answer_ok(r->id, "\"version\":%d,\"pid\":%d,\"stage\":\"%s\"", VERSION, (int)getpid(), STAGE);
}

static void on_frame(char *text, size_t length)
{
	static struct json_doc doc;
	struct request r = {.doc = &doc, .at = json_read(&doc, text, length)};
	if (!r.at || r.at->type != JSON_OBJECT) {
		answer_fault(0, "frame", EPROTO, "not a JSON object of integers, strings, lists and objects", NULL, 0);
		return;
	}
	int64_t id = want_number(&r, "id", 1, 9007199254740991, 0);
	if (!request_good(&r))
		return;
	r.id = id;
	if (job_id_in_use(id)) {
		answer_fault(id, "request", EALREADY, "the id is in use", NULL, 0);
		return;
	}
	static const struct { const char *name; void (*call)(struct request *); } ops[] = {
		{"hello", on_hello}, {"start", on_start}, {"kill", on_kill}, {"watch", on_watch},
	};
	const struct json *op = want(&r, "op");
	const char *name = op && op->type == JSON_STRING ? op->text : "";
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (strcmp(name, ops[i].name) == 0) {
			ops[i].call(&r);
			return;
		}
	if (!on_errand(&r, name))
		answer_fault(id, "request", ENOSYS, "no such op", NULL, 0);
}

void input_take(void)
{
	size_t at = 0;
	while (!jobs_full() && used - at >= 4) {
		const unsigned char *p = (const unsigned char *)input + at;
		uint32_t n = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
		if (n == 0 || n > FRAME_MAX) {
			answer_fault(0, "frame", EPROTO, "a frame must be 1 to 1048576 bytes", NULL, 0);
			loop_close(); /* there is no way back into step */
			break;
		}
		if (used - at - 4 < n)
			break;
		/* The reader terminates strings in place, at most over the closing quote: the next frame is safe. */
		on_frame(input + at + 4, n);
		at += 4 + n;
	}
	memmove(input, input + at, used - at);
	used -= at;
}

bool input_waiting(void)
{
	return used > 0;
}

bool input_read(void)
{
	if (used == FRAME_MAX + 4)
		return true; /* full of requests that wait for room */
	ssize_t n = read(0, input + used, FRAME_MAX + 4 - used);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	used += (size_t)n;
	input_take();
	return true;
}
