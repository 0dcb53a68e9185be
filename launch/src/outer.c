#define _GNU_SOURCE
#include "outer.h"
#include "cgroup.h"
#include "ids.h"
#include "loop.h"
#include "sys.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int user_fd = -1, mount_fd = -1;

/* Makes the namespaces and waits: first until the maps are written, then until both are held by descriptors. */
static _Noreturn void hold(int in, int out)
{
	char byte = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWUSER) < 0)
		die("cannot make a user namespace");
	if (write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1)
		_exit(1);
	if (!ids_become_root() || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		die("cannot make a mount namespace in the user namespace");
	cgroup_hide_hybrid();
	if (write(out, &byte, 1) != 1)
		_exit(1);
	read(in, &byte, 1);
	_exit(0);
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
	if (ids)
		ids_map(holder, ids, (struct ids_places){.own = 0, .given = 1});
	else
		ids_map_own(holder);
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
	return setns(user_fd, CLONE_NEWUSER) == 0 && setns(mount_fd, CLONE_NEWNS) == 0 && ids_become_root();
}
