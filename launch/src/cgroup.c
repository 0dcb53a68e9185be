#define _GNU_SOURCE
#include "cgroup.h"
#include "loop.h"
#include "sys.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statfs.h>

/* How many groups inside one another are taken away. */
enum { DEPTH_MAX = 8 };

/* -1 for what is no cgroup. */
static int open_group(const char *cgroup)
{
	int dir = w_openat2(AT_FDCWD, cgroup, O_RDONLY | O_DIRECTORY, 0, W_RESOLVE_NO_SYMLINKS | W_RESOLVE_NO_MAGICLINKS);
	struct statfs fs;
	if (dir >= 0 && !(fstatfs(dir, &fs) == 0 && (fs.f_type == W_CGROUP_MAGIC || fs.f_type == W_CGROUP2_MAGIC)))
		close_fd(&dir);
	return dir;
}

static int members(const char *cgroup, pid_t *pids, int max)
{
	int dir = open_group(cgroup);
	int fd = dir < 0 ? -1 : openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	close_fd(&dir);
	if (fd < 0)
		return 0;
	FILE *file = fdopen(fd, "r");
	int n = 0, pid;
	while (file && n < max && fscanf(file, "%d", &pid) == 1)
		if (pid > 1 && pid != getpid())
			pids[n++] = pid;
	if (file)
		fclose(file);
	else
		close(fd);
	return n;
}

static int kill_members(const char *cgroup)
{
	pid_t first[256], second[512];
	int fds[256], killed = 0;
	int n = members(cgroup, first, 256);
	for (int i = 0; i < n; i++)
		fds[i] = w_pidfd_open(first[i]);
	/* A pid counts only if it is still listed after its pidfd was opened. */
	int m = n ? members(cgroup, second, 512) : 0;
	for (int i = 0; i < n; i++) {
		for (int k = 0; fds[i] >= 0 && k < m; k++)
			if (second[k] == first[i] && w_pidfd_kill(fds[i], SIGKILL) == 0) {
				killed++;
				break;
			}
		close_fd(&fds[i]);
	}
	return killed;
}

/* In the first version's freezer a killed process dies only when it is let go: whoever froze it, it would be waited for for ever. */
static void thaw(const char *cgroup)
{
	int dir = open_group(cgroup);
	int fd = dir < 0 ? -1 : openat(dir, "freezer.state", O_WRONLY | O_CLOEXEC);
	close_fd(&dir);
	if (fd >= 0 && write(fd, "THAWED", 6) < 0)
		errno = 0; /* then it stays busy, and that is told */
	close_fd(&fd);
}

static int clear(const char *cgroup, int depth)
{
	int killed = kill_members(cgroup);
	thaw(cgroup);
	int fd = depth > 0 ? open_group(cgroup) : -1;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (fd >= 0 && !dir)
		close_fd(&fd);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		char inside[PATH_MAX];
		if (e->d_type != DT_DIR || !strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		int length = snprintf(inside, sizeof inside, "%s/%s", cgroup, e->d_name);
		if (length < (int)sizeof inside && rmdir(inside) < 0 && errno == EBUSY)
			killed += clear(inside, depth - 1);
	}
	if (dir)
		closedir(dir);
	return killed;
}

int cgroup_kill(const char *cgroup) { return clear(cgroup, DEPTH_MAX); }

void cgroup_hide_hybrid(void)
{
	const char *unified = "/sys/fs/cgroup/unified";
	struct statfs top, fs;
	if (statfs("/sys/fs/cgroup", &top) < 0 || top.f_type == W_CGROUP2_MAGIC || statfs(unified, &fs) < 0 || fs.f_type != W_CGROUP2_MAGIC)
		return;
	char controllers[256];
	int fd = open("/sys/fs/cgroup/unified/cgroup.controllers", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, controllers, sizeof controllers);
	close_fd(&fd);
	/* In a user namespace what was mounted before cannot be unmounted, but it can be covered. */
	if (n > 1 && umount2(unified, MNT_DETACH) < 0 && mount("none", unified, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k") < 0)
		die("cannot hide the cgroup2 mount");
}
