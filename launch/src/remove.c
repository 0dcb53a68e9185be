#define _GNU_SOURCE
#include "remove.h"
#include "below.h"
#include "report.h"
#include "sys.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEEP 64 /* directories deeper than this are first moved up to the top */

static const uint64_t strict = W_RESOLVE_BENEATH | W_RESOLVE_NO_SYMLINKS | W_RESOLVE_NO_MAGICLINKS | W_RESOLVE_NO_XDEV;

struct removal {
	int top; /* top: the tree's own directory */
	unsigned moved;
	const char *path;
};

static _Noreturn void stop(const struct removal *r, const char *name)
{
	int error = errno;
	char subject[120];
	snprintf(subject, sizeof subject, "%.60s … %.40s", r->path, name);
	fail_with(error, "remove", error == EXDEV || error == EBUSY ? "a mount is in the way at" : "cannot remove", subject);
}

/* Empties the directory. Takes the descriptor over. */
static void empty(struct removal *r, int fd, int depth)
{
	DIR *dir = fdopendir(fd);
	if (!dir)
		stop(r, ".");
	for (;;) {
		size_t seen = 0;
		struct dirent *e;
		while ((e = readdir(dir))) {
			const char *name = e->d_name;
			if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
				continue;
			seen++;
			if (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) {
				if (unlinkat(fd, name, 0) < 0 && errno != ENOENT)
					stop(r, name);
				continue;
			}
			if (unlinkat(fd, name, e->d_type == DT_DIR ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT)
				continue;
			if (errno != ENOTEMPTY && errno != EEXIST && errno != EISDIR && errno != EPERM)
				stop(r, name);
			int below = w_openat2(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, strict);
			if (below < 0)
				stop(r, name);
			if (depth >= DEEP) {
				char up[48];
				do
					snprintf(up, sizeof up, ".warren-deep-%u", r->moved++);
				while (faccessat(r->top, up, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
				if (renameat(fd, name, r->top, up) < 0)
					stop(r, name);
				close(below);
				continue;
			}
			empty(r, below, depth + 1);
			if (unlinkat(fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
				stop(r, name);
		}
		if (seen == 0)
			break;
		rewinddir(dir);
	}
	closedir(dir);
}

void remove_name(int parent, const char *name, const char *path)
{
	struct removal r = {.path = path};
	struct stat st;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return;
		stop(&r, name);
	}
	if (S_ISDIR(st.st_mode)) {
		r.top = w_openat2(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, strict);
		int copy = r.top < 0 ? -1 : dup(r.top);
		if (copy < 0)
			stop(&r, name);
		empty(&r, copy, 0);
		close(r.top);
	}
	if (unlinkat(parent, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT)
		stop(&r, name);
}

void remove_tree(const struct errand *e)
{
	const char *last;
	int parent = below_parent(e->path, O_PATH, W_RESOLVE_NO_XDEV, &last);
	if (parent >= 0)
		remove_name(parent, last, e->path);
	else if (errno != ENOENT)
		stop(&(struct removal){.path = e->path}, last);
}
