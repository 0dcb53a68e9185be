#define _GNU_SOURCE
#include "job.h"
#include "loop.h"
#include "out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_MAX 512 /* when all are taken, no more requests are read until one is done */
#define CHILDREN_MAX 256 /* hanging starts must not keep kills out */

struct job jobs[JOBS_MAX];
int job_count;
static int taken, children;

bool job_has_child(const struct job *j)
{
	return j->kind == START || j->kind == ERRAND;
}

struct job *job_new(enum kind kind, const char *step, int64_t id, int64_t timeout, const char *const *cgroups, int cgroup_count)
{
	struct job *j = NULL;
	for (int i = 0; !j && i < JOBS_MAX && (kind == KILL || children < CHILDREN_MAX); i++)
		if (jobs[i].kind == FREE)
			j = &jobs[i];
	if (j) {
		if (j - jobs >= job_count)
			job_count = (int)(j - jobs) + 1;
		uint32_t generation = j->generation + 1;
		*j = (struct job){.kind = kind, .generation = generation, .step = step, .id = id, .deadline = now_ms() + (uint64_t)timeout, .report_fd = -1, .output_fd = -1, .stage_fd = -1, .victim_fd = -1};
		taken++;
		children += job_has_child(j);
		while (j->cgroup_count < cgroup_count && (j->cgroups[j->cgroup_count] = strdup(cgroups[j->cgroup_count])))
			j->cgroup_count++;
		if (j->cgroup_count == cgroup_count)
			return j;
		job_free(j);
	}
	answer_fault(id, "request", EAGAIN, "too many requests at once", NULL, 0);
	return NULL;
}

void job_free(struct job *j)
{
	unwatch_fd(&j->report_fd);
	unwatch_fd(&j->output_fd);
	unwatch_fd(&j->victim_fd);
	close_fd(&j->stage_fd);
	free(j->tail);
	j->tail = NULL;
	for (int i = 0; i < j->cgroup_count; i++)
		free(j->cgroups[i]);
	j->cgroup_count = 0;
	taken--;
	children -= job_has_child(j);
	j->kind = FREE;
}

bool jobs_full(void)
{
	return taken == JOBS_MAX;
}

bool jobs_any(void)
{
	return taken > 0;
}

bool job_id_in_use(int64_t id)
{
	for (int i = 0; i < job_count; i++)
		if (jobs[i].kind != FREE && jobs[i].id == id)
			return true;
	return false;
}
