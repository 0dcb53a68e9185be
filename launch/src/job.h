/* Requests that take time: a fixed table, one entry each. */
#ifndef WARREN_LAUNCH_JOB_H
#define WARREN_LAUNCH_JOB_H

#include "report.h"
#include "start.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum kind { FREE, START, ERRAND, KILL }; /* an errand is a forked child that does one thing to a path */

struct job {
	enum kind kind;
	uint32_t generation;
	int64_t id;
	uint64_t deadline, retry; /* ms; 0 is never */
	unsigned tries;
	/* start, errand */
	const char *step;         /* of a fault that the child did not report itself */
	pid_t child;              /* 0 once reaped */
	int status;
	int report_fd, output_fd, stage_fd;
	struct report report;
	bool reported, doomed;    /* doomed: a fault is coming, what was started is being killed */
	char *tail;
	size_t tail_used;
	/* kill */
	int victim_fd;
	int killed;
	/* kill, start */
	char *cgroups[CGROUPS_MAX];
	int cgroup_count;
};

extern struct job jobs[];
extern int job_count; /* entries ever used: what loops look at */

/* Copies the cgroups. NULL when there is no room: has answered EAGAIN then. */
struct job *job_new(enum kind kind, const char *step, int64_t id, int64_t timeout, const char *const *cgroups, int cgroup_count);
void job_free(struct job *j);
bool job_has_child(const struct job *j);
bool jobs_full(void);
bool jobs_any(void);
bool job_id_in_use(int64_t id);

#endif
