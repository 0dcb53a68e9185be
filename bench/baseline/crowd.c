/* Other programs that make sandboxes, as one would use them: from nothing to nothing, a command in one that runs, and many that sleep.
 * What they make lies in groups crun-N, runc-N and bwrap-N, where whoever asked can see what it costs. */
#define _GNU_SOURCE
#include "baseline.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1000 };

static char *bwrap_idle[WORDS_MOST];
static char home[400];

void crowd_read(void)
{
	words_read("bwrap.idle", bwrap_idle);
	mkdir("/mnt/state/crun", 0700);
	mkdir("/mnt/state/runc", 0700);
	if (!getcwd(home, sizeof home))
		fail("folder");
}

static const char *in_home(const char *file)
{
	static char path[500];
	snprintf(path, sizeof path, "%s/%s", home, file);
	return path;
}

/* ---- crun and runc: the same words for both ---- */

struct runtime {
	const char *name;
	char *program;
	int count;
};

static struct runtime crun = {"crun", "/usr/bin/crun", 0}, runc = {"runc", "/usr/sbin/runc", 0};

static uint64_t cycle(struct runtime *runtime)
{
	char state[100];
	snprintf(state, sizeof state, "/mnt/state/%s", runtime->name);
	char *arguments[] = {runtime->program, "--root", state, "run", "--bundle", "/mnt/bundle", "stock", NULL};
	uint64_t start = now_us();
	layers_up();
	run(arguments, NULL);
	layers_down();
	return now_us() - start;
}

/* A bundle of its own: runc reads config.json there and nowhere else. */
static void write_bundle(const char *bundle, const struct runtime *runtime)
{
	char file[200], source[100];
	mkdir(bundle, 0755);
	snprintf(file, sizeof file, "%s/config.json", bundle);
	snprintf(source, sizeof source, "idle.%s.json", runtime->name);
	char *text = slurp(in_home(source), NULL), *own = numbered(text, runtime->count);
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, own, strlen(own)) < 0)
		fail(file);
	close(fd);
	free(text);
	free(own);
}

static uint64_t start(struct runtime *runtime)
{
	char state[100], bundle[100], id[50];
	if (runtime->count == MOST)
		fail("too many");
	runtime->count++;
	snprintf(state, sizeof state, "/mnt/state/%s", runtime->name);
	snprintf(id, sizeof id, "%s-%d", runtime->name, runtime->count);
	snprintf(bundle, sizeof bundle, "/mnt/crowd/%s", id);
	write_bundle(bundle, runtime);
	char *arguments[] = {runtime->program, "--root", state, "run", "--detach", "--bundle", bundle, id, NULL};
	uint64_t began = now_us();
	layers_up();
	run(arguments, NULL);
	layers_down();
	return now_us() - began;
}

static uint64_t exec(struct runtime *runtime)
{
	char state[100], id[50];
	snprintf(state, sizeof state, "/mnt/state/%s", runtime->name);
	snprintf(id, sizeof id, "%s-%d", runtime->name, runtime->count);
	char *arguments[] = {runtime->program, "--root", state, "exec", id, "/usr/bin/true", NULL};
	uint64_t began = now_us();
	run(arguments, NULL);
	return now_us() - began;
}

static uint64_t stop(struct runtime *runtime)
{
	uint64_t began = now_us();
	for (; runtime->count > 0; runtime->count--) {
		char state[100], id[50];
		snprintf(state, sizeof state, "/mnt/state/%s", runtime->name);
		snprintf(id, sizeof id, "%s-%d", runtime->name, runtime->count);
		char *arguments[] = {runtime->program, "--root", state, "delete", "-f", id, NULL};
		run(arguments, NULL);
	}
	return now_us() - began;
}

uint64_t crun_cycle(void) { return cycle(&crun); }
uint64_t crun_start(void) { return start(&crun); }
uint64_t crun_exec(void) { return exec(&crun); }
uint64_t crun_stop(void) { return stop(&crun); }
uint64_t runc_cycle(void) { return cycle(&runc); }
uint64_t runc_start(void) { return start(&runc); }
uint64_t runc_exec(void) { return exec(&runc); }
uint64_t runc_stop(void) { return stop(&runc); }

/* ---- bwrap: has no state; what it started is known by its process ---- */

enum { FILTER = 9, INFO = 10 };

static struct {
	pid_t outer, inner;
	struct steps *remove;
} wrapped[MOST];
static int wrapped_count;

/* It says the process before that has become what was asked for. */
static void wait_until_asleep(pid_t pid)
{
	char path[64], program[200] = "";
	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	for (int tries = 0; tries < 50000; tries++) {
		ssize_t n = readlink(path, program, sizeof program - 1);
		program[n < 0 ? 0 : n] = 0;
		if (strstr(program, "sleep"))
			return;
		usleep(100);
	}
	fail("bwrap did not start");
}

/* To its end: it is written in pieces, and bwrap dies of one that nobody takes. */
static pid_t said_pid(int info)
{
	char said[1000] = "";
	ssize_t n, size = 0;
	while ((n = read(info, said + size, sizeof said - 1 - (size_t)size)) > 0)
		size += n;
	const char *mark = strstr(said, "child-pid\":");
	if (!mark)
		fail("bwrap did not say what it started");
	return atoi(mark + strlen("child-pid\":"));
}

uint64_t bwrap_start(void)
{
	int info[2], number = wrapped_count + 1;
	if (wrapped_count == MOST)
		fail("too many");
	struct steps *make = steps_read_numbered(in_home("crowd.cgroup"), number);
	struct steps *join = steps_read_numbered(in_home("crowd.join"), number);
	wrapped[wrapped_count].remove = steps_read_numbered(in_home("crowd.uncgroup"), number);
	uint64_t began = now_us();
	layers_up();
	steps_do(make);
	int filter = open("/mnt/seccomp.bpf", O_RDONLY | O_CLOEXEC);
	if (filter < 0 || pipe2(info, O_CLOEXEC) < 0 || dup2(filter, FILTER) < 0 || dup2(info[1], INFO) < 0)
		fail("bwrap");
	wrapped[wrapped_count].outer = begin(bwrap_idle, join);
	close(filter);
	close(info[1]);
	close(FILTER);
	close(INFO);
	wrapped[wrapped_count].inner = said_pid(info[0]);
	close(info[0]);
	wait_until_asleep(wrapped[wrapped_count++].inner);
	layers_down();
	uint64_t end = now_us();
	free(make);
	free(join);
	return end - began;
}

/* It has no way back into what it made; this is how others do that. */
uint64_t bwrap_exec(void)
{
	char pid[20];
	if (wrapped_count == 0)
		fail("none runs");
	snprintf(pid, sizeof pid, "%d", (int)wrapped[wrapped_count - 1].inner);
	char *arguments[] = {"/usr/bin/nsenter", "--preserve-credentials", "-t", pid, "-U", "-m", "-p", "-n", "-i", "-u", "-C", "/usr/bin/true", NULL};
	uint64_t began = now_us();
	run(arguments, NULL);
	return now_us() - began;
}

uint64_t bwrap_stop(void)
{
	uint64_t began = now_us();
	while (wrapped_count > 0) {
		wrapped_count--;
		kill(wrapped[wrapped_count].inner, SIGKILL);
		waitpid(wrapped[wrapped_count].outer, NULL, 0);
		steps_do(wrapped[wrapped_count].remove);
		free(wrapped[wrapped_count].remove);
	}
	return now_us() - began;
}
