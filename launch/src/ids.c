#define _GNU_SOURCE
#include "ids.h"
#include "loop.h"
#include "sys.h"

#include <grp.h>
#include <stdio.h>
#include <sys/wait.h>

/* The setuid programs that know what was given to whom. */
static void run_map(const char *program, pid_t pid, const unsigned map[5])
{
	char text[6][16];
	snprintf(text[0], sizeof text[0], "%d", (int)pid);
	for (int i = 0; i < 5; i++)
		snprintf(text[i + 1], sizeof text[i + 1], "%u", map[i]);
	pid_t child = fork();
	if (child == 0) {
		dup2(2, 1); /* frames only on our own output */
		execlp(program, program, text[0], text[1], text[2], "1", text[3], text[4], text[5], (char *)NULL);
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

void ids_map(pid_t pid, const char *given, struct ids_places places)
{
	unsigned uid, gid, count;
	char more;
	if (sscanf(given, "%u:%u:%u%c", &uid, &gid, &count, &more) != 3 || count == 0) {
		errno = EINVAL;
		die("UID:GID:COUNT");
	}
	run_map("newuidmap", pid, (unsigned[]){places.own, geteuid(), places.given, uid, count});
	run_map("newgidmap", pid, (unsigned[]){places.own, getegid(), places.given, gid, count});
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

void ids_map_own(pid_t pid)
{
	write_proc(pid, "setgroups", "deny", 0);
	write_proc(pid, "uid_map", "0 %u 1\n", geteuid());
	write_proc(pid, "gid_map", "0 %u 1\n", getegid());
}

bool ids_become_root(void)
{
	/* Denied where only one's own id is mapped; the groups then stay what they were, and count for nothing more. */
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return false;
	return setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0;
}
