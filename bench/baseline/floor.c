/* The least that makes a sandbox like ours: the same namespaces, mounts, masks, limits and filter by bare system calls, without
 * anything that checks, records or could be asked for more. */
#define _GNU_SOURCE
#include "baseline.h"

#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BASE = 0x70000000, WARREN = 65533, SECCOMP_SET_FILTER = 1 };

static struct steps *mounts, *join;
static char *filter;
static size_t filter_size;

void floor_read(void)
{
	mounts = steps_read("floor.mounts");
	join = steps_read("cgroup.join");
	filter = slurp("seccomp.bpf", &filter_size);
}

struct plan {
	int mapped[2], done[2], born[2];
};

static void drop(void)
{
	struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
	for (int capability = 0; capability <= 40; capability++)
		prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
	if (setresgid(WARREN, WARREN, WARREN) < 0 || setresuid(WARREN, WARREN, WARREN) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail("drop");
	struct {
		unsigned short length;
		void *code;
	} program = {(unsigned short)(filter_size / 8), filter};
	if (syscall(SYS_seccomp, SECCOMP_SET_FILTER, 0, &program) < 0)
		fail("seccomp");
}

static void loopback_up(void)
{
	int net = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	if (ioctl(net, SIOCSIFFLAGS, &lo) < 0)
		fail("loopback");
	close(net);
}

static int inside(void *context)
{
	struct plan *plan = context;
	char byte;
	be_child();
	give_streams();
	if (read(plan->mapped[0], &byte, 1) != 1 || setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		fail("enter");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("/mnt/bundle/root", "/mnt/bundle/root", NULL, MS_BIND | MS_REC, NULL) < 0 || chdir("/mnt/bundle/root") < 0)
		fail("root");
	steps_do(mounts);
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		fail("pivot");
	loopback_up();
	if (sethostname("sandbox", 7) < 0)
		fail("hostname");
	drop();
	dup2(plan->done[1], 3);
	char *arguments[] = {"/run/warren/init", "--pid1", NULL}, *environment[] = {NULL};
	execve(arguments[0], arguments, environment);
	fail("exec");
}

static void map(pid_t pid, const char *which)
{
	char path[64], text[64];
	int n = snprintf(text, sizeof text, "0 %d 65536\n", BASE);
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, which);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		fail(path);
	close(fd);
}

/* A child in between joins the cgroups by itself, which is cheap, and clones a sibling. */
static pid_t clone_inside(struct plan *plan)
{
	static char stack[65536] __attribute__((aligned(16)));
	const int namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	pid_t pid = -1, between = fork();
	if (between == 0) {
		be_child();
		give_streams();
		steps_do(join);
		pid = clone(inside, stack + sizeof stack, CLONE_PARENT | namespaces | SIGCHLD, plan);
		if (pid < 0 || write(plan->born[1], &pid, sizeof pid) != sizeof pid)
			fail("clone");
		_exit(0);
	}
	wait_for(between);
	if (read(plan->born[0], &pid, sizeof pid) != sizeof pid)
		fail("clone");
	return pid;
}

uint64_t floor_start(void)
{
	struct plan plan;
	char byte;
	if (pipe2(plan.mapped, O_CLOEXEC) < 0 || pipe2(plan.done, O_CLOEXEC) < 0 || pipe2(plan.born, O_CLOEXEC) < 0)
		fail("pipe");
	pid_t pid = clone_inside(&plan);
	map(pid, "uid_map");
	map(pid, "gid_map");
	close(plan.done[1]);
	if (write(plan.mapped[1], "x", 1) != 1 || read(plan.done[0], &byte, 1) != 1)
		fail("floor");
	uint64_t end = now_us();
	for (int i = 0; i < 2; i++) {
		close(plan.mapped[i]);
		close(plan.born[i]);
	}
	close(plan.done[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return end;
}

int floor_pid1(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		execl("/usr/bin/true", "true", NULL);
		_exit(127);
	}
	int status;
	if (waitpid(pid, &status, 0) != pid || status != 0 || write(3, "x", 1) != 1)
		return 1;
	for (;;)
		pause();
}
