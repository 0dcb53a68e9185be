#define _GNU_SOURCE
#include "outer.h"
#include "cgroup.h"
#include "loop.h"
#include "sys.h"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int user_fd = -1, mount_fd = -1;

static bool become_root(void)
{
	/* Denied where only one's own id is mapped; the groups then stay what they were, and count for nothing more. */
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return false;
	return setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0;
}

/* Makes the namespaces and waits: first until the maps are written, then until both are held by descriptors. */
static _Noreturn void hold(int in, int out)
{
	char byte = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWUSER) < 0)
		die("cannot make a user namespace");
	if (write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1)
		_exit(1);
	if (!become_root() || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		die("cannot make a mount namespace in the user namespace");
	cgroup_hide_hybrid();
	if (write(out, &byte, 1) != 1)
		_exit(1);
	read(in, &byte, 1);
	_exit(0);
}

static void run_map(const char *program, pid_t pid, unsigned own, unsigned first, unsigned count)
{
	char text[4][16];
	snprintf(text[0], sizeof text[0], "%d", (int)pid);
	snprintf(text[1], sizeof text[1], "%u", own);
	snprintf(text[2], sizeof text[2], "%u", first);
	snprintf(text[3], sizeof text[3], "%u", count);
	pid_t child = fork();
	if (child == 0) {
		dup2(2, 1); /* frames only on our own output */
		execlp(program, program, text[0], "0", text[1], "1", "1", text[2], text[3], (char *)NULL);
		die(program);
	}
	int status = 0;
	if (child < 0 || waitpid(child, &status, 0) < 0)
		die(program);
	if (status != 0) {
		errno = EPERM;
		die("the ids cannot be mapped (newuidmap, newgidmap)");
	}
}

static void write_proc(pid_t pid, const char *name, const char *format, unsigned own)
{
	char path[48], text[32];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	int n = snprintf(text, sizeof text, format, own);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		die(path);
	close(fd);
}

static void map_ids(pid_t pid, const char *ids)
{
	unsigned uid, gid, count;
	char more;
	if (!ids) {
		write_proc(pid, "setgroups", "deny", 0);
		write_proc(pid, "uid_map", "0 %u 1\n", geteuid());
		write_proc(pid, "gid_map", "0 %u 1\n", getegid());
		return;
	}
	if (sscanf(ids, "%u:%u:%u%c", &uid, &gid, &count, &more) != 3 || count == 0) {
		errno = EINVAL;
		die("--ids UID:GID:COUNT");
	}
	run_map("newuidmap", pid, geteuid(), uid, count);
	run_map("newgidmap", pid, getegid(), gid, count);
}

static int open_namespace(pid_t pid, const char *name)
{
	char path[48];
	snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, START_FD);
	if (high < 0)
		die(path);
	close(fd);
	return high;
}

void outer_make(const char *ids)
{
	int in[2], out[2];
	char byte = 0;
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		die("pipe");
	pid_t holder = fork();
	if (holder == 0) {
		close(in[1]);
		close(out[0]);
		hold(in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	if (holder < 0 || read(out[0], &byte, 1) != 1)
		_exit(1); /* it has said why */
	map_ids(holder, ids);
	if (write(in[1], &byte, 1) != 1 || read(out[0], &byte, 1) != 1)
		_exit(1);
	user_fd = open_namespace(holder, "user");
	mount_fd = open_namespace(holder, "mnt");
	close(in[1]);
	close(out[0]);
	waitpid(holder, NULL, 0);
}

bool outer_is(void)
{
	return user_fd >= 0;
}

bool outer_enter(void)
{
	if (!outer_is())
		return true;
	return setns(user_fd, CLONE_NEWUSER) == 0 && setns(mount_fd, CLONE_NEWNS) == 0 && become_root();
}
