/* Usage: baseline FOLDER INIT CGROUP. Reads one word per line and answers how many microseconds that took. Leaves, and takes
 * with it what it made, when its standard input ends. */
#define _GNU_SOURCE
#include "baseline.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct steps *layers, *unlayer, *cgroup, *uncgroup, *join;
static char *bwrap[WORDS_MOST];
static const char *folder, *parent;
static int rounds;

/* ---- the ways ---- */

/* A folder of its own for every start: a writable layer is never used twice. */
static void next_round(void)
{
	char path[400];
	snprintf(path, sizeof path, "%s/rounds/%d", folder, ++rounds);
	if (mkdir(path, 0700) < 0 || chdir(path) < 0)
		fail(path);
}

void layers_up(void)
{
	next_round();
	steps_do(layers);
}

void layers_down(void)
{
	steps_do(unlayer);
}

static uint64_t by_crun(void)
{
	char *arguments[] = {"/usr/bin/crun", "--root", "/mnt/state", "run", "--bundle", "/mnt/bundle", "stock", NULL};
	next_round();
	uint64_t start = now_us();
	steps_do(layers);
	run(arguments, NULL);
	uint64_t end = now_us();
	steps_do(unlayer);
	return end - start;
}

static uint64_t by_crun_delete(void)
{
	char *start[] = {"/usr/bin/crun", "--root", "/mnt/state", "run", "--detach", "--bundle", "/mnt/bundle", "--config", "/mnt/bundle/idle.json", "stock", NULL};
	char *delete[] = {"/usr/bin/crun", "--root", "/mnt/state", "delete", "-f", "stock", NULL};
	next_round();
	steps_do(layers);
	run(start, NULL);
	uint64_t began = now_us();
	run(delete, NULL);
	uint64_t end = now_us();
	steps_do(unlayer);
	return end - began;
}

static uint64_t by_bwrap(void)
{
	next_round();
	uint64_t start = now_us();
	steps_do(layers);
	steps_do(cgroup);
	int filter = open("/mnt/seccomp.bpf", O_RDONLY | O_CLOEXEC);
	/* bwrap is told this number. */
	dup2(filter, 9);
	run(bwrap, join);
	uint64_t end = now_us();
	close(filter);
	close(9);
	steps_do(uncgroup);
	steps_do(unlayer);
	return end - start;
}

static uint64_t by_bwrap_cycle(void)
{
	uint64_t start = now_us();
	by_bwrap();
	return now_us() - start;
}

static uint64_t by_floor(void)
{
	next_round();
	uint64_t start = now_us();
	steps_do(layers);
	steps_do(cgroup);
	uint64_t end = floor_start();
	steps_do(uncgroup);
	steps_do(unlayer);
	return end - start;
}

static uint64_t by_fork(void)
{
	char *arguments[] = {"/usr/bin/true", NULL};
	uint64_t start = now_us();
	run(arguments, NULL);
	return now_us() - start;
}

static pid_t start(char *const *arguments, int in, int out)
{
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		be_child();
		dup2(in, 0);
		dup2(out, 1);
		execv(arguments[0], arguments);
		fail(arguments[0]);
	}
	return pid;
}

static uint64_t by_pipe(void)
{
	char *head[] = {"/usr/bin/head", "-c", "134217728", "/dev/zero", NULL}, *cat[] = {"/usr/bin/cat", NULL};
	int ends[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
	uint64_t began = now_us();
	if (pipe2(ends, O_CLOEXEC) < 0)
		fail("pipe");
	pid_t writer = start(head, null, ends[1]), reader = start(cat, ends[0], null);
	close(ends[0]);
	close(ends[1]);
	wait_for(writer);
	wait_for(reader);
	uint64_t end = now_us();
	close(null);
	return end - began;
}

/* ---- life ---- */

static void kill_members(const char *group)
{
	char path[600];
	snprintf(path, sizeof path, "%s/cgroup.procs", group);
	FILE *list = fopen(path, "re");
	int pid;
	while (list && fscanf(list, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (list)
		fclose(list);
}

static void end_group(const char *path)
{
	kill_members(path);
	for (int tries = 0; rmdir(path) < 0 && errno != ENOENT && tries < 2000; tries++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		usleep(500);
	}
}

/* Runtimes make their groups in every hierarchy there is, and leave the parent. */
static void sweep(void)
{
	DIR *hierarchies = opendir("/sys/fs/cgroup");
	struct dirent *entry, *below;
	while (hierarchies && (entry = readdir(hierarchies))) {
		char path[400], group[700];
		if (!strcmp(entry->d_name, ".."))
			continue;
		snprintf(path, sizeof path, "/sys/fs/cgroup/%s/%s", entry->d_name, parent);
		DIR *groups = opendir(path);
		if (!groups)
			continue;
		while ((below = readdir(groups)))
			if (below->d_type == DT_DIR && below->d_name[0] != '.') {
				snprintf(group, sizeof group, "%s/%s", path, below->d_name);
				end_group(group);
			}
		closedir(groups);
		end_group(path);
	}
	if (hierarchies)
		closedir(hierarchies);
}

/* In a mount namespace of our own: all that is mounted goes with us. The stage is where a user namespace without rights can walk. */
static void enter(const char *init)
{
	/* crun takes a hybrid machine for one with version 2 alone. */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		fail("mount namespace");
	umount2("/sys/fs/cgroup/unified", MNT_DETACH);
	if (mount("stage", "/mnt", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") < 0)
		fail("stage");
	static const char *const folders[] = {"/mnt/bundle", "/mnt/bundle/root", "/mnt/state", "/mnt/etc", "/mnt/crowd"}, *const files[] = {"init", "pid1", "seccomp.bpf", "bundle/config.json", "bundle/idle.json"};
	for (size_t i = 0; i < 5; i++)
		mkdir(folders[i], 0755);
	const char *sources[] = {init, "program", "seccomp.bpf", "config.json", "idle.json"};
	for (size_t i = 0; i < 5; i++) {
		char to[100];
		snprintf(to, sizeof to, "/mnt/%s", files[i]);
		close(open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
		if (mount(sources[i], to, NULL, MS_BIND, NULL) < 0)
			fail(to);
	}
	if (mount("etc", "/mnt/etc", NULL, MS_BIND, NULL) < 0)
		fail("etc");
}

static void read_all(void)
{
	layers = steps_read("layers");
	unlayer = steps_read("unlayer");
	cgroup = steps_read("cgroup");
	uncgroup = steps_read("uncgroup");
	join = steps_read("cgroup.join");
	floor_read();
	words_read("bwrap", bwrap);
	crowd_read();
	mkdir("rounds", 0700);
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		uint64_t (*take)(void);
	} ways[] = {{"crun run", by_crun}, {"crun delete", by_crun_delete}, {"bwrap", by_bwrap}, {"floor", by_floor}, {"true", by_fork}, {"pipe to cat", by_pipe},
		{"crun cycle", crun_cycle}, {"crun start", crun_start}, {"crun exec", crun_exec}, {"crun stop", crun_stop},
		{"runc cycle", runc_cycle}, {"runc start", runc_start}, {"runc exec", runc_exec}, {"runc stop", runc_stop},
		{"bwrap cycle", by_bwrap_cycle}, {"bwrap start", bwrap_start}, {"bwrap exec", bwrap_exec}, {"bwrap stop", bwrap_stop}};
	if (count == 2 && !strcmp(arguments[1], "--pid1"))
		return floor_pid1();
	if (count != 4 || chdir(arguments[1]) < 0)
		return 2;
	folder = arguments[1];
	parent = arguments[3];
	atexit(sweep);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	enter(arguments[2]);
	read_all();
	open_streams();
	char line[64];
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
			if (!strcmp(line, ways[i].name)) {
				printf("%llu\n", (unsigned long long)ways[i].take());
				fflush(stdout);
			}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	return 0;
}
