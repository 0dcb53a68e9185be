#define _GNU_SOURCE
#include "inside.h"
#include "ids.h"
#include "loop.h"
#include "sys.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static unsigned count_of(const char *ids)
{
	unsigned count = 0;
	if (sscanf(ids, "%*u:%*u:%u", &count) != 1)
		count = 0;
	return count;
}

/* Whoever is in the new namespace has no right to write its maps: a child that stays outside has them written. */
static pid_t fork_mapper(const char *ids, const int ready[2])
{
	pid_t user = getpid(), mapper = fork();
	if (mapper != 0)
		return mapper;
	char byte;
	/* Killed before the next line, the other end of the pipe is closed; ours would keep it open, and us here for ever. */
	close(ready[1]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(ready[0], &byte, 1) != 1)
		_exit(1);
	ids_map(user, ids, (struct ids_places){.own = count_of(ids), .given = 0});
	_exit(0);
}

_Noreturn void inside_run(const char *ids, char **arguments)
{
	int ready[2], status = 0;
	pid_t parent = getppid();
	if (pipe2(ready, O_CLOEXEC) < 0)
		die("pipe");
	pid_t mapper = fork_mapper(ids, ready);
	if (mapper < 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) < 0)
		die("cannot make a user namespace");
	if (write(ready[1], "", 1) != 1 || waitpid(mapper, &status, 0) < 0 || status != 0)
		_exit(1); /* it has said why */
	close(ready[0]);
	close(ready[1]);
	if (!ids_become_root() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		die("cannot become root of the user namespace");
	/* After the change of ids, which clears it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	execvp(arguments[0], arguments);
	die(arguments[0]);
}
