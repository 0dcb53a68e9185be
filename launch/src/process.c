#define _GNU_SOURCE
#include "process.h"
#include "loop.h"
#include "sys.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool process_stat(pid_t pid, char ticks[TICKS_SIZE], pid_t *parent)
{
	char path[32], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	char *p = strrchr(text, ')'); /* the name may hold anything */
	char state;
	unsigned long long start; /* field 22; the parent is 4 */
	if (!p || sscanf(p + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state, parent, &start) != 3)
		return false;
	if (state == 'Z' || state == 'X')
		return false;
	snprintf(ticks, TICKS_SIZE, "%llu", start);
	return true;
}

int process_open(pid_t pid, const char *ticks)
{
	int fd = w_pidfd_open(pid);
	if (fd < 0)
		return -1;
	char found[TICKS_SIZE];
	pid_t parent;
	/* Checked after the pidfd was opened: it cannot have been recycled since. */
	if (!process_stat(pid, found, &parent) || strcmp(found, ticks) != 0) {
		close(fd);
		errno = ESRCH;
		return -1;
	}
	return fd;
}

bool process_in_namespace(pid_t pid, uint64_t userns)
{
	char path[40], wanted[40], link[40];
	snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
	snprintf(wanted, sizeof wanted, "user:[%llu]", (unsigned long long)userns);
	ssize_t n = readlink(path, link, sizeof link);
	return n > 0 && (size_t)n == strlen(wanted) && memcmp(link, wanted, (size_t)n) == 0;
}

int kill_namespace(uint64_t userns)
{
	int seen = 0;
	DIR *dir = opendir("/proc");
	if (!dir)
		return 0;
	for (struct dirent *e; (e = readdir(dir));) {
		int pid = e->d_name[0] >= '0' && e->d_name[0] <= '9' ? atoi(e->d_name) : 0;
		if (pid <= 1 || pid == getpid() || !process_in_namespace(pid, userns))
			continue;
		int fd = w_pidfd_open(pid);
		if (fd >= 0 && process_in_namespace(pid, userns)) { /* still the same after the pidfd pinned it */
			w_pidfd_kill(fd, SIGKILL);
			seen++;
		}
		close_fd(&fd);
	}
	closedir(dir);
	return seen;
}
