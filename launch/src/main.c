/* warren-launch: starts and ends sandboxes for one runner. Frames on stdin and stdout, one forked child per start, no
 * threads, nothing waited for but in epoll. ../README.md describes the wire. */
#define _GNU_SOURCE
#include "cgroup.h"
#include "foreign.h"
#include "inside.h"
#include "loop.h"
#include "outer.h"
#include "request.h"
#include "sys.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>

int main(int count, char **arguments)
{
	const char *ids = NULL;
	if (count > 3 && strcmp(arguments[1], "--inside") == 0)
		inside_run(arguments[2], arguments + 3);
	for (int i = 1; i < count; i += 2) {
		bool paired = i + 1 < count;
		if (paired && strcmp(arguments[i], "--ids") == 0)
			ids = arguments[i + 1];
		else if (!paired || strcmp(arguments[i], "--root") != 0 || !request_add_root(arguments[i + 1])) {
			dprintf(2, "usage: warren-launch --root DIR [--root DIR …] [--ids UID:GID:COUNT]   (absolute; frames on standard input and output)\n"
			           "       warren-launch --inside UID:GID:COUNT PROGRAM [ARG …]\n");
			return 2;
		}
	}
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	syscall(SYS_close_range, 3u, ~0u, 0u);
	if (geteuid() != 0)
		outer_make(ids);
	else if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		die("cannot make a private mount namespace");
	else {
		cgroup_hide_hybrid();
		foreign_release();
	}
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		die("cannot become a subreaper");
	signal(SIGPIPE, SIG_IGN);
	loop();
	return 0;
}
