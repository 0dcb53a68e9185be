#define _GNU_SOURCE
#include "out.h"
#include "json.h"
#include "loop.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *output;
static size_t used, size;

static const char *errno_name(int error)
{
	static const struct { int error; const char *name; } names[] = {
		{EPERM, "EPERM"}, {ENOENT, "ENOENT"}, {ESRCH, "ESRCH"}, {EINTR, "EINTR"}, {EIO, "EIO"}, {ENXIO, "ENXIO"}, {E2BIG, "E2BIG"},
		{ENOEXEC, "ENOEXEC"}, {EBADF, "EBADF"}, {ECHILD, "ECHILD"}, {EAGAIN, "EAGAIN"}, {ENOMEM, "ENOMEM"}, {EACCES, "EACCES"},
		{EBUSY, "EBUSY"}, {EEXIST, "EEXIST"}, {EXDEV, "EXDEV"}, {ENODEV, "ENODEV"}, {ENOTDIR, "ENOTDIR"}, {EISDIR, "EISDIR"},
		{EINVAL, "EINVAL"}, {ENFILE, "ENFILE"}, {EMFILE, "EMFILE"}, {EFBIG, "EFBIG"}, {ENOSPC, "ENOSPC"}, {EROFS, "EROFS"},
		{EMLINK, "EMLINK"}, {ENAMETOOLONG, "ENAMETOOLONG"}, {ENOSYS, "ENOSYS"}, {ENOTEMPTY, "ENOTEMPTY"}, {ELOOP, "ELOOP"},
		{EOVERFLOW, "EOVERFLOW"}, {EUSERS, "EUSERS"}, {ENOTSUP, "ENOTSUP"}, {EADDRINUSE, "EADDRINUSE"}, {ETIMEDOUT, "ETIMEDOUT"},
		{ECANCELED, "ECANCELED"}, {EDQUOT, "EDQUOT"}, {ESTALE, "ESTALE"}, {EALREADY, "EALREADY"}, {EPROTO, "EPROTO"},
		{ENOTTY, "ENOTTY"}, {ENOTCONN, "ENOTCONN"},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].error == error)
			return names[i].name;
	return NULL;
}

bool out_flush(void)
{
	while (used) {
		ssize_t n = write(1, output, used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			used = 0;
			return false;
		}
		memmove(output, output + n, used - (size_t)n);
		used -= (size_t)n;
	}
	return true;
}

size_t out_unsent(void)
{
	return used;
}

static void append(const char *text, size_t length)
{
	if (used + length > size) {
		size_t wanted = size ? size : 8192;
		while (wanted < used + length)
			wanted *= 2;
		char *more = realloc(output, wanted);
		if (!more)
			die("memory");
		output = more;
		size = wanted;
	}
	memcpy(output + used, text, length);
	used += length;
}

static void put_list(const char *format, va_list list)
{
	char line[256];
	int n = vsnprintf(line, sizeof line, format, list);
	append(line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

void put(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	put_list(format, list);
	va_end(list);
}

/* Bytes of any kind as a JSON string: what is not printable ASCII or valid UTF-8 becomes '?'. */
static void put_string(const char *text, size_t length)
{
	append("\"", 1);
	for (size_t i = 0; i < length;) {
		unsigned char c = (unsigned char)text[i];
		size_t n = 1;
		if (c == '"' || c == '\\') {
			append("\\", 1);
			append(text + i, 1);
		} else if (c == '\n' || c == '\t') {
			append(c == '\n' ? "\\n" : "\\t", 2);
		} else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !(n = (size_t)json_utf8(text + i, text + length)))) {
			append("?", 1);
			n = 1;
		} else {
			append(text + i, n);
		}
		i += n;
	}
	append("\"", 1);
}

size_t frame_begin(void)
{
	size_t at = used;
	append("\0\0\0\0", 4);
	return at;
}

void frame_end(size_t at)
{
	uint32_t n = (uint32_t)(used - at - 4);
	unsigned char length[4] = {(unsigned char)(n >> 24), (unsigned char)(n >> 16), (unsigned char)(n >> 8), (unsigned char)n};
	memcpy(output + at, length, 4);
}

static void put_id(int64_t id)
{
	if (id > 0)
		put("{\"id\":%lld,", (long long)id);
	else
		put("{\"id\":null,");
}

void answer_fault(int64_t id, const char *step, int error, const char *message, const char *tail, size_t tail_length)
{
	size_t at = frame_begin();
	put_id(id);
	put("\"fault\":{\"step\":\"%s\",\"errno\":", step);
	const char *name = errno_name(error);
	if (name)
		put("\"%s\"", name);
	else if (error)
		put("\"%d\"", error);
	else
		put("null");
	put(",\"message\":");
	put_string(message, strlen(message));
	if (tail_length) {
		put(",\"stderr\":");
		put_string(tail, tail_length);
	}
	put("}}");
	frame_end(at);
}

void answer_ok(int64_t id, const char *members, ...)
{
	va_list list;
	size_t at = frame_begin();
	put_id(id);
	put("\"ok\":{");
	va_start(list, members);
	put_list(members, list);
	va_end(list);
	put("}}");
	frame_end(at);
}
