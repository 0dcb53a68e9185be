#define _GNU_SOURCE
#include "baseline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = 6, STEPS = 160 };

struct steps {
	size_t count;
	char *list[STEPS][WORDS];
};

/* One act per line, words between tabs. */
static struct steps *parse(const char *file, char *text)
{
	struct steps *steps = calloc(1, sizeof *steps);
	char *line;
	while ((line = strsep(&text, "\n")) && *line) {
		if (steps->count == STEPS)
			fail(file);
		char **words = steps->list[steps->count++], *word;
		for (int i = 0; i < WORDS; i++)
			words[i] = (word = strsep(&line, "\t")) ? word : "";
	}
	return steps;
}

struct steps *steps_read(const char *file)
{
	return parse(file, slurp(file, NULL));
}

struct steps *steps_read_numbered(const char *file, int number)
{
	char *text = slurp(file, NULL), *whole = numbered(text, number);
	free(text);
	return parse(file, whole);
}

static int put(const char *path, const char *text, int flags)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);
	if (fd < 0)
		return -1;
	ssize_t n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -1 : 0;
}

/* A cgroup is busy for a moment after its last process has been waited for. */
static int remove_folder(const char *path)
{
	for (int tries = 0; rmdir(path) < 0; tries++) {
		if (errno == ENOENT)
			return 0;
		if (errno != EBUSY || tries == 5000)
			return -1;
		usleep(200);
	}
	return 0;
}

static int act(char *const *w)
{
	if (!strcmp(w[0], "mkdir"))
		return mkdir(w[1], 0755) < 0 && errno != EEXIST ? -1 : 0;
	if (!strcmp(w[0], "rmdir"))
		return remove_folder(w[1]);
	if (!strcmp(w[0], "touch"))
		return put(w[1], "", O_CREAT);
	if (!strcmp(w[0], "write"))
		return put(w[1], w[2], 0);
	if (!strcmp(w[0], "link"))
		return symlink(w[1], w[2]);
	if (!strcmp(w[0], "mount")) /* source, target, type, flags, data */
		return mount(w[1], w[2], *w[3] ? w[3] : NULL, strtoul(w[4], NULL, 10), *w[5] ? w[5] : NULL);
	if (!strcmp(w[0], "umount"))
		return umount2(w[1], MNT_DETACH);
	errno = EINVAL;
	return -1;
}

void steps_do(const struct steps *steps)
{
	for (size_t i = 0; i < steps->count; i++)
		if (act(steps->list[i]) < 0) {
			char what[400];
			snprintf(what, sizeof what, "%s %s %s", steps->list[i][0], steps->list[i][1], steps->list[i][2]);
			fail(what);
		}
}
