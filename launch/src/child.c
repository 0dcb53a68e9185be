#define _GNU_SOURCE
#include "child.h"
#include "cgroup.h"
#include "loop.h"
#include "out.h"
#include "outer.h"
#include "process.h"
#include "sys.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define TAIL_MAX 4096

/* A pipe or pair, both ends above the descriptors a runtime gets, so that nothing has to be moved out of the way. */
static bool high(int fds[2])
{
	for (int i = 0; i < 2; i++) {
		int fd = fds[i] >= START_FD ? fds[i] : fcntl(fds[i], F_DUPFD_CLOEXEC, START_FD);
		if (fd != fds[i])
			close(fds[i]);
		fds[i] = fd;
	}
	return fds[0] >= 0 && fds[1] >= 0;
}

static bool make_pair(int fds[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0 && high(fds);
}

static bool make_pipe(int fds[2])
{
	return pipe2(fds, O_CLOEXEC) == 0 && high(fds);
}

static void fork_failed(struct job *j, int error)
{
	answer_fault(j->id, "fork", error, "cannot start a child", NULL, 0);
	job_free(j);
}

void child_start(struct job *j, const struct start *s)
{
	int pair[2] = {-1, -1}, in[2] = {-1, -1}, out[2] = {-1, -1};
	bool made = make_pair(pair) && make_pipe(in) && make_pipe(out);
	pid_t launcher = getpid();
	j->child = made ? fork() : -1;
	if (j->child == 0)
		start_child(s, launcher, pair[1], in[0], out[1]);
	int error = errno;
	close_fd(&pair[1]);
	close_fd(&in[0]);
	close_fd(&in[1]);
	close_fd(&out[1]);
	j->report_fd = pair[0];
	j->output_fd = out[0];
	if (j->child < 0) {
		fork_failed(j, error);
		return;
	}
	fcntl(j->output_fd, F_SETFL, O_NONBLOCK);
	watch_fd(j->report_fd, EPOLLIN, FROM_REPORT, (uint32_t)(j - jobs), j->generation);
	watch_fd(j->output_fd, EPOLLIN, FROM_OUTPUT, (uint32_t)(j - jobs), j->generation);
}

/* An errand's report is read when it has ended; there is at most one message, and it fits. */
void child_errand(struct job *j, const struct errand *e)
{
	int pair[2] = {-1, -1};
	bool made = make_pair(pair);
	j->child = made ? fork() : -1;
	if (j->child == 0) {
		bool entered = outer_enter();
		int error = errno;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(pair[1], 3);
		syscall(SYS_close_range, 4u, ~0u, 0u);
		report_open(3);
		if (!entered)
			fail_with(error, j->step, "cannot enter the namespaces of the user", NULL);
		e->run(e);
		_exit(0);
	}
	int error = errno;
	close_fd(&pair[1]);
	j->report_fd = pair[0];
	if (j->child < 0)
		fork_failed(j, error);
}

void child_read_output(struct job *j)
{
	char chunk[TAIL_MAX];
	for (int rounds = 0; j->output_fd >= 0 && rounds < 16; rounds++) {
		ssize_t n = read(j->output_fd, chunk, sizeof chunk);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		if (n == 0) {
			unwatch_fd(&j->output_fd);
			return;
		}
		if (!j->tail && !(j->tail = malloc(TAIL_MAX)))
			return;
		size_t size = (size_t)n, keep = TAIL_MAX - size < j->tail_used ? TAIL_MAX - size : j->tail_used;
		memmove(j->tail, j->tail + j->tail_used - keep, keep);
		memcpy(j->tail + keep, chunk, size);
		j->tail_used = keep + size;
	}
}

static void emit_listening(const struct job *j)
{
	size_t at = frame_begin();
	put("{\"event\":\"listening\",\"id\":%lld}", (long long)j->id);
	frame_end(at);
}

void child_read_report(struct job *j)
{
	for (;;) {
		struct report r;
		union { char space[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control;
		struct iovec io = {.iov_base = &r, .iov_len = sizeof r};
		struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
		ssize_t n = recvmsg(j->report_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		if (n == 0) {
			unwatch_fd(&j->report_fd);
			return;
		}
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);
		if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			close_fd(&j->stage_fd);
			memcpy(&j->stage_fd, CMSG_DATA(c), sizeof(int));
		}
		if (n != (ssize_t)sizeof r)
			continue;
		/* Who connects now is answered the moment init runs, while the runtime is still tidying up. */
		if (j->kind == START && !r.failed && !j->reported && !j->doomed)
			emit_listening(j);
		if (j->reported && j->report.userns)
			r.userns = j->report.userns;
		j->report = r;
		j->reported = true;
	}
}

static void set_fault(struct job *j, int error, const char *message)
{
	if (j->doomed)
		return;
	j->doomed = true;
	if (j->reported && j->report.failed)
		return; /* the child's own words are better */
	j->report.failed = true;
	j->report.error = error;
	snprintf(j->report.step, sizeof j->report.step, "%s", j->step);
	snprintf(j->report.message, sizeof j->report.message, "%s", message);
}

static void answer_report(struct job *j)
{
	answer_fault(j->id, j->report.step, j->report.error, j->report.message, j->tail, j->tail_used);
	job_free(j);
}

static void end_errand(struct job *j)
{
	if (j->doomed || j->status != 0 || (j->reported && j->report.failed)) {
		set_fault(j, EIO, "ended early");
		answer_report(j);
		return;
	}
	answer_ok(j->id, "%s", j->report.answer);
	job_free(j);
}

/* The init that the runtime started: its pid file says which, and it must live in the user namespace we made. */
static pid_t find_init(struct job *j, char ticks[TICKS_SIZE], pid_t *parent)
{
	char text[16] = {0};
	int fd = j->stage_fd < 0 ? -1 : w_openat2(j->stage_fd, "pid", O_RDONLY | O_NOFOLLOW, 0, W_RESOLVE_BENEATH | W_RESOLVE_NO_SYMLINKS);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	close_fd(&fd);
	char *end;
	long pid = n > 0 ? strtol(text, &end, 10) : 0;
	if (pid <= 1 || pid > INT_MAX || (*end && *end != '\n'))
		return 0;
	return process_stat((pid_t)pid, ticks, parent) && process_in_namespace((pid_t)pid, j->report.userns) ? (pid_t)pid : 0;
}

/* What a failed start left behind is dead before the fault is sent. Returns true when nothing is left. */
static bool swept(struct job *j)
{
	int left = 0;
	if (j->report.userns)
		left += kill_namespace(j->report.userns);
	for (int i = 0; i < j->cgroup_count; i++)
		left += cgroup_kill(j->cgroups[i]);
	return left == 0;
}

static void answer_start(struct job *j, pid_t pid, const char *ticks)
{
	const struct report *r = &j->report;
	const uint32_t *us = r->step_us;
	answer_ok(j->id, "\"pid\":%d,\"startTicks\":\"%s\",\"idmap\":{\"lower\":%s,\"upper\":%s},\"stepUs\":[%u,%u,%u,%u,%u,%u]", (int)pid, ticks, r->idmap_lower ? "true" : "false", r->idmap_upper ? "true" : "false", us[0], us[1], us[2], us[3], us[4], us[5]);
	job_free(j);
}

static void end_start(struct job *j)
{
	char ticks[TICKS_SIZE] = "", message[64];
	pid_t pid = 0, parent = 0;
	if (j->reported && j->report.failed) {
		j->doomed = true;
	} else if (!j->doomed && j->status != 0) {
		bool by_signal = WIFSIGNALED(j->status);
		snprintf(message, sizeof message, "the runtime ended with %s %d", by_signal ? "signal" : "code", by_signal ? WTERMSIG(j->status) : WEXITSTATUS(j->status));
		set_fault(j, 0, message);
	} else if (!j->doomed && !(pid = find_init(j, ticks, &parent))) {
		set_fault(j, ECHILD, "the runtime ended well but its init is not there");
	}
	if (!j->doomed && parent != getpid()) {
		/* crun's last process is still between us and init; its end (a SIGCHLD: it was orphaned to us) makes init our child. */
		j->retry = now_ms() + 5;
	} else if (!j->doomed) {
		answer_start(j, pid, ticks);
	} else if (!swept(j) && ++j->tries < 200) {
		j->retry = now_ms() + (j->tries < 10 ? 1 : 20);
	} else {
		answer_report(j);
	}
}

void child_advance(struct job *j)
{
	if (j->child > 0)
		return;
	if (j->report_fd >= 0)
		child_read_report(j);
	if (j->output_fd >= 0)
		child_read_output(j);
	if (j->kind == START)
		end_start(j);
	else
		end_errand(j);
}

void child_doom(struct job *j, int error, const char *message)
{
	if (j->doomed)
		return;
	set_fault(j, error, message);
	if (j->child <= 0) {
		child_advance(j);
		return;
	}
	kill(j->child, SIGKILL); /* not reaped yet, so the pid is still ours */
	for (int i = 0; i < j->cgroup_count; i++)
		cgroup_kill(j->cgroups[i]); /* it may stand frozen there, and would not die */
}
