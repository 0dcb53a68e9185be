#define _GNU_SOURCE
#include "baseline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static bool is_child;
/* Standard input is at its end; what is said comes here. */
static int input = -1, said_in = -1, said_out = -1;

uint64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

char *slurp(const char *file, size_t *size)
{
	enum { MOST = 1 << 20 };
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	char *text = calloc(1, MOST);
	ssize_t n = fd < 0 ? -1 : read(fd, text, MOST - 1);
	if (n < 0)
		fail(file);
	close(fd);
	if (size)
		*size = (size_t)n;
	return text;
}

char *numbered(const char *text, int number)
{
	size_t room = strlen(text) * 6 + 1;
	char *whole = calloc(1, room), *at = whole;
	for (const char *mark; (mark = strstr(text, "@@")); text = mark + 2)
		at += snprintf(at, room - (size_t)(at - whole), "%.*s%d", (int)(mark - text), text, number);
	snprintf(at, room - (size_t)(at - whole), "%s", text);
	return whole;
}

void words_read(const char *file, char **words)
{
	size_t size, count = 0;
	char *text = slurp(file, &size);
	for (char *word = text; word < text + size && count < WORDS_MOST - 1; word += strlen(word) + 1)
		words[count++] = word;
}

void be_child(void)
{
	is_child = true;
}

_Noreturn void fail(const char *what)
{
	char said[2000] = "";
	int code = errno;
	if (is_child) {
		dprintf(2, "%s: %s\n", what, strerror(code));
		_exit(1);
	}
	ssize_t n = said_out < 0 ? 0 : read(said_out, said, sizeof said - 1);
	for (ssize_t i = 0; i < n; i++)
		if (said[i] == '\n')
			said[i] = ' ';
	printf("!%s: %s %s\n", what, strerror(code), said);
	fflush(stdout);
	exit(1);
}

void open_streams(void)
{
	int in[2], out[2];
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		fail("pipe");
	close(in[1]);
	input = in[0];
	said_in = out[1];
	said_out = out[0];
	fcntl(said_out, F_SETFL, O_NONBLOCK);
}

void give_streams(void)
{
	dup2(input, 0);
	dup2(said_in, 1);
	dup2(said_in, 2);
}

void wait_for(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0) {
		errno = 0;
		fail("a program failed");
	}
}

pid_t begin(char *const *arguments, const struct steps *before)
{
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		be_child();
		give_streams();
		if (before)
			steps_do(before);
		/* Where it was is closed to a user namespace. */
		if (chdir("/") < 0)
			fail("chdir");
		execv(arguments[0], arguments);
		fail(arguments[0]);
	}
	return pid;
}

void run(char *const *arguments, const struct steps *before)
{
	wait_for(begin(arguments, before));
}
