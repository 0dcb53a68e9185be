#define _GNU_SOURCE
#include "loop.h"
#include "child.h"
#include "input.h"
#include "job.h"
#include "kill.h"
#include "out.h"
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_PAUSE (1u << 20) /* unsent answers beyond which no more requests are read */

static int epoll_fd, signal_fd;
static bool closing;

uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

_Noreturn void die(const char *what)
{
	dprintf(2, "warren-launch: %s: %s\n", what, strerror(errno));
	_exit(1);
}

void loop_close(void)
{
	closing = true;
}

void watch_fd(int fd, uint32_t events, enum source source, uint32_t index, uint32_t generation)
{
	struct epoll_event e = {.events = events, .data.u64 = (uint64_t)source << 56 | (uint64_t)(generation & 0xffffff) << 32 | index};
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 && errno == EEXIST)
		epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &e);
}

void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Closing alone is not enough: a forked child's copy would keep the registration alive. */
void unwatch_fd(int *fd)
{
	if (*fd >= 0)
		epoll_ctl(epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
	close_fd(fd);
}

static void advance(struct job *j)
{
	if (j->kind == KILL)
		kill_advance(j);
	else
		child_advance(j);
}

static void reap(void)
{
	bool any = false;
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0; any = true) {
		watch_reaped(pid, status);
		for (int i = 0; i < job_count; i++)
			if (job_has_child(&jobs[i]) && jobs[i].child == pid) {
				jobs[i].child = 0;
				jobs[i].status = status;
				child_advance(&jobs[i]);
				break;
			}
	}
	for (int i = 0; any && i < job_count; i++) /* those that wait for init to become our child */
		if (jobs[i].kind == START && jobs[i].child == 0 && !jobs[i].doomed && jobs[i].retry)
			child_advance(&jobs[i]);
}

static int next_timeout(uint64_t now)
{
	uint64_t first = UINT64_MAX;
	for (int i = 0; i < job_count; i++) {
		const struct job *j = &jobs[i];
		if (j->kind == FREE)
			continue;
		if (!j->doomed && j->deadline < first)
			first = j->deadline;
		if (j->retry && j->retry < first)
			first = j->retry;
	}
	return first == UINT64_MAX ? -1 : first <= now ? 0 : first - now > 60000 ? 60000 : (int)(first - now);
}

static void on_time(uint64_t now)
{
	for (int i = 0; i < job_count; i++) {
		struct job *j = &jobs[i];
		if (j->kind == FREE)
			continue;
		if (j->deadline <= now && !j->doomed) {
			if (j->kind == KILL)
				kill_advance(j);
			else
				child_doom(j, ETIMEDOUT, "took longer than timeoutMs");
		} else if (j->retry && j->retry <= now) {
			j->retry = 0;
			advance(j);
		}
	}
}

static void on_signal(void)
{
	struct signalfd_siginfo info;
	while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
		if (info.ssi_signo != SIGCHLD)
			closing = true;
	reap();
}

static void on_job(enum source source, uint32_t index, uint32_t generation)
{
	struct job *j = &jobs[index];
	if (j->kind == FREE || (j->generation & 0xffffff) != generation)
		return;
	if (source == FROM_REPORT)
		child_read_report(j);
	if (source == FROM_OUTPUT)
		child_read_output(j);
	if (source == FROM_VICTIM) {
		reap();
		unwatch_fd(&j->victim_fd);
		kill_advance(j);
	}
}

static void on_event(const struct epoll_event *e)
{
	enum source source = (enum source)(e->data.u64 >> 56);
	uint32_t generation = (uint32_t)(e->data.u64 >> 32) & 0xffffff, index = (uint32_t)e->data.u64;
	switch (source) {
	case FROM_STDIN:
		if (!closing && !input_read())
			closing = true;
		break;
	case FROM_STDOUT:
		closing = closing || e->events & (EPOLLERR | EPOLLHUP);
		break;
	case FROM_SIGNALS:
		on_signal();
		break;
	case FROM_WATCH:
		reap(); /* if it was ours, its status comes along */
		watch_ended(index, generation);
		break;
	default:
		on_job(source, index, generation);
	}
}

/* Sends what there is; returns whether to read no more requests for now. */
static bool send_answers(void)
{
	static bool sending, paused;
	if (!out_flush())
		closing = true;
	if (sending != (out_unsent() > 0)) {
		sending = !sending;
		watch_fd(1, sending ? EPOLLOUT : 0, FROM_STDOUT, 0, 0);
	}
	bool pause = out_unsent() > OUTPUT_PAUSE || jobs_full();
	if (pause != paused && !closing)
		watch_fd(0, pause ? 0 : EPOLLIN, FROM_STDIN, 0, 0);
	return paused = pause;
}

static void begin(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int e = epoll_create1(EPOLL_CLOEXEC), s = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	epoll_fd = fcntl(e, F_DUPFD_CLOEXEC, START_FD);
	signal_fd = fcntl(s, F_DUPFD_CLOEXEC, START_FD);
	if (epoll_fd < 0 || signal_fd < 0)
		die("cannot begin");
	close(e);
	close(s);
	fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
	fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_NONBLOCK);
	watch_fd(signal_fd, EPOLLIN, FROM_SIGNALS, 0, 0);
	watch_fd(0, EPOLLIN, FROM_STDIN, 0, 0);
	watch_fd(1, 0, FROM_STDOUT, 0, 0);
}

void loop(void)
{
	uint64_t last_call = 0; /* once closing: when to leave in any case */
	begin();
	for (;;) {
		if (!send_answers() && !closing && input_waiting()) {
			input_take(); /* what was left when it was paused */
			send_answers();
		}
		if (closing && !last_call) {
			/* Half-made sandboxes go; finished ones and kills under way stay as asked. */
			last_call = now_ms() + 5000;
			epoll_ctl(epoll_fd, EPOLL_CTL_DEL, 0, NULL);
			for (int i = 0; i < job_count; i++)
				if (job_has_child(&jobs[i]))
					child_doom(&jobs[i], ECANCELED, "the launcher is ending");
		}
		if (closing && (!jobs_any() || now_ms() > last_call))
			return;
		struct epoll_event events[64];
		int timeout = next_timeout(now_ms());
		int n = epoll_wait(epoll_fd, events, 64, closing && (timeout < 0 || timeout > 100) ? 100 : timeout);
		if (n < 0 && errno != EINTR)
			die("epoll_wait");
		for (int i = 0; i < n; i++)
			on_event(&events[i]);
		on_time(now_ms());
	}
}
