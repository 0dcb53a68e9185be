#define _GNU_SOURCE
#include "watch.h"
#include "loop.h"
#include "out.h"
#include "process.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#define WATCHES_MAX 8192

static struct watch {
	pid_t pid;
	int fd; /* −1: free */
	uint32_t generation;
	char ticks[TICKS_SIZE];
	bool reaped;
	int status;
} watches[WATCHES_MAX];
static int watch_count; /* entries ever used */

static void emit_exited(struct watch *w)
{
	size_t at = frame_begin();
	put("{\"event\":\"exited\",\"pid\":%d,\"startTicks\":\"%s\"", (int)w->pid, w->ticks);
	if (w->reaped && WIFEXITED(w->status))
		put(",\"code\":%d", WEXITSTATUS(w->status));
	if (w->reaped && WIFSIGNALED(w->status))
		put(",\"signal\":%d", WTERMSIG(w->status));
	put("}");
	frame_end(at);
	unwatch_fd(&w->fd);
}

void on_watch(struct request *r)
{
	pid_t pid = (pid_t)want_number(r, "pid", 2, INT_MAX, 0);
	const char *ticks = want_ticks(r);
	if (!request_good(r))
		return;
	int i = 0;
	while (i < watch_count && watches[i].fd >= 0)
		i++;
	if (i == WATCHES_MAX) {
		answer_fault(r->id, "request", EAGAIN, "too many watches", NULL, 0);
		return;
	}
	if (i == watch_count)
		watch_count++;
	struct watch *w = &watches[i];
	*w = (struct watch){.pid = pid, .fd = process_open(pid, ticks), .generation = w->generation + 1};
	snprintf(w->ticks, sizeof w->ticks, "%s", ticks);
	if (w->fd < 0 && errno != ESRCH && errno != EINVAL) {
		answer_fault(r->id, "watch", errno, "cannot open the process", NULL, 0);
		return;
	}
	answer_ok(r->id, "%s", "");
	if (w->fd < 0)
		emit_exited(w); /* gone already */
	else
		watch_fd(w->fd, EPOLLIN, FROM_WATCH, (uint32_t)i, w->generation);
}

void watch_reaped(pid_t pid, int status)
{
	for (int i = 0; i < watch_count; i++)
		if (watches[i].fd >= 0 && watches[i].pid == pid) {
			watches[i].reaped = true;
			watches[i].status = status;
		}
}

void watch_ended(uint32_t index, uint32_t generation)
{
	struct watch *w = &watches[index];
	if (w->fd >= 0 && (w->generation & 0xffffff) == generation)
		emit_exited(w);
}
