#define _GNU_SOURCE
#include "kill.h"
#include "cgroup.h"
#include "loop.h"
#include "out.h"
#include "process.h"
#include "sys.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>

static void give_up(struct job *j, const char *step, int error, const char *message)
{
	answer_fault(j->id, step, error, message, NULL, 0);
	job_free(j);
}

void on_kill(struct request *r)
{
	const struct json *who = want(r, "pid");
	bool nobody = !who || who->type == JSON_NULL;
	pid_t pid = nobody ? 0 : (pid_t)want_number(r, "pid", 2, INT_MAX, 0);
	const char *ticks = nobody ? "" : want_ticks(r);
	const char *cgroups[CGROUPS_MAX];
	int count = want_cgroups(r, cgroups);
	int64_t timeout = want_number(r, "timeoutMs", 1, 600000, 5000);
	if (pid == getpid())
		bad(r, "pid", "is the launcher");
	struct job *j = request_good(r) ? job_new(KILL, "kill", r->id, timeout, cgroups, count) : NULL;
	if (!j)
		return;
	j->victim_fd = nobody ? -1 : process_open(pid, ticks);
	if (j->victim_fd < 0) {
		if (!nobody && errno != ESRCH && errno != EINVAL)
			give_up(j, "kill", errno, "cannot open the process");
		else
			kill_advance(j);
		return;
	}
	if (w_pidfd_kill(j->victim_fd, SIGKILL) == 0) {
		j->killed++;
	} else if (errno != ESRCH) {
		give_up(j, "kill", errno, "cannot kill the process");
		return;
	}
	watch_fd(j->victim_fd, EPOLLIN, FROM_VICTIM, (uint32_t)(j - jobs), j->generation);
}

void kill_advance(struct job *j)
{
	uint64_t now = now_ms();
	if (j->victim_fd >= 0) {
		if (now >= j->deadline)
			give_up(j, "kill", ETIMEDOUT, "the process does not die");
		return;
	}
	int left = 0;
	bool counted = j->tries > 0; /* the same processes are in every hierarchy, and a dying one may be seen again */
	for (int i = 0; i < j->cgroup_count; i++) {
		if (!j->cgroups[i])
			continue;
		if (rmdir(j->cgroups[i]) == 0 || errno == ENOENT) {
			free(j->cgroups[i]);
			j->cgroups[i] = NULL;
			continue;
		}
		if (errno != EBUSY) {
			give_up(j, "cgroup", errno, j->cgroups[i]);
			return;
		}
		int found = cgroup_kill(j->cgroups[i]);
		if (!counted)
			j->killed += found;
		counted = true;
		left++;
	}
	if (left && now < j->deadline) {
		unsigned wait = 1u << (j->tries < 5 ? j->tries : 5); /* v1 has no event for "empty" */
		j->tries++;
		j->retry = now + wait;
	} else if (left) {
		give_up(j, "cgroup", EBUSY, "a cgroup stays busy");
	} else {
		answer_ok(j->id, "\"killed\":%d", j->killed);
		job_free(j);
	}
}
