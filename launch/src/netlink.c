#define _GNU_SOURCE
#include "netlink.h"
#include "netlink_sys.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static size_t aligned(size_t size)
{
	return (size + 3) & ~(size_t)3;
}

int nl_open(int protocol)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	struct w_nl_address self = {.family = AF_NETLINK};
	if (fd >= 0 && bind(fd, (struct sockaddr *)&self, sizeof self) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Sizes are ours and bounded: what does not fit is a bug, and ends the child. */
void nl_raw(struct nl *m, const void *data, size_t size)
{
	size_t whole = aligned(size);
	if (whole > sizeof m->bytes - m->used)
		abort();
	memset(m->bytes + m->used, 0, whole);
	if (size)
		memcpy(m->bytes + m->used, data, size);
	m->used += whole;
	((struct w_nl_head *)(void *)(m->bytes + m->last))->length = (uint32_t)(m->used - m->last);
}

void nl_begin(struct nl *m, uint16_t type, uint16_t flags, const void *head, size_t size)
{
	static uint32_t sequence;
	struct w_nl_head h = {.type = type, .flags = (uint16_t)(W_REQUEST | flags), .sequence = ++sequence};
	m->last = m->used;
	nl_raw(m, &h, sizeof h);
	nl_raw(m, head, size);
}

void nl_put(struct nl *m, uint16_t type, const void *data, size_t size)
{
	struct w_nl_attribute a = {.type = type, .length = (uint16_t)(sizeof a + size)};
	nl_raw(m, &a, sizeof a);
	nl_raw(m, data, size);
}

void nl_text(struct nl *m, uint16_t type, const char *text)
{
	nl_put(m, type, text, strlen(text) + 1);
}

void nl_number(struct nl *m, uint16_t type, uint32_t value)
{
	nl_put(m, type, &value, sizeof value);
}

size_t nl_nest(struct nl *m, uint16_t type)
{
	size_t at = m->used;
	nl_put(m, type | W_NESTED, NULL, 0);
	return at;
}

void nl_close(struct nl *m, size_t nest)
{
	((struct w_nl_attribute *)(void *)(m->bytes + nest))->length = (uint16_t)(m->used - nest);
}

static int wanted(const struct nl *m)
{
	int count = 0;
	for (size_t at = 0; at < m->used;) {
		const struct w_nl_head *h = (const void *)(m->bytes + at);
		count += (h->flags & W_ACK) != 0;
		at += aligned(h->length);
	}
	return count;
}

/* How many answers are in there; the first error goes to *error. */
static int answers(const char *bytes, size_t size, int *error)
{
	int count = 0;
	for (size_t at = 0; size - at >= sizeof(struct w_nl_head);) {
		const struct w_nl_head *h = (const void *)(bytes + at);
		if (h->length < sizeof *h || h->length > size - at)
			break;
		const struct w_nl_error *e = (const void *)(h + 1);
		bool answer = h->type == W_ERROR && h->length >= sizeof *h + sizeof *e;
		if (answer && e->error && !*error)
			*error = -e->error;
		count += answer;
		size_t whole = aligned(h->length);
		at += whole < size - at ? whole : size - at;
	}
	return count;
}

int nl_ask(int fd, struct nl *m)
{
	struct w_nl_address kernel = {.family = AF_NETLINK};
	int left = wanted(m), error = 0;
	ssize_t sent = sendto(fd, m->bytes, m->used, 0, (struct sockaddr *)&kernel, sizeof kernel);
	m->used = 0;
	if (sent < 0)
		return -1;
	/* It has answered before sendto returns; a batch that is refused as a whole gets fewer answers than it asked for. */
	while (left > 0) {
		union { char bytes[8192]; uint32_t align; } in;
		ssize_t n = recv(fd, in.bytes, sizeof in.bytes, MSG_DONTWAIT);
		if (n <= 0)
			break;
		left -= answers(in.bytes, (size_t)n, &error);
	}
	errno = error ? error : EIO;
	return error || left > 0 ? -1 : 0;
}
