#define _GNU_SOURCE
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int report_fd = -1;

void report_open(int fd)
{
	report_fd = fd;
}

bool report_send(const struct report *r, int pass)
{
	union { char space[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control;
	memset(&control, 0, sizeof control);
	struct iovec io = {.iov_base = (void *)(uintptr_t)r, .iov_len = sizeof *r};
	struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1};
	if (pass >= 0) {
		message.msg_control = control.space;
		message.msg_controllen = sizeof control.space;
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &pass, sizeof pass);
	}
	return sendmsg(report_fd, &message, MSG_NOSIGNAL) >= 0;
}

_Noreturn void fail_with(int error, const char *step, const char *message, const char *subject)
{
	struct report r = {.failed = true, .error = error};
	snprintf(r.step, sizeof r.step, "%s", step);
	snprintf(r.message, sizeof r.message, subject ? "%s: %.120s" : "%s", message, subject);
	report_send(&r, -1);
	_exit(1);
}

_Noreturn void fail(const char *step, const char *message, const char *subject)
{
	fail_with(errno, step, message, subject);
}
