#define _GNU_SOURCE
#include "remove.h"
#include "start.h"
#include "sys.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEEP 64 /* directories deeper than this are first moved up to the top */

static const uint64_t strict = W_RESOLVE_BENEATH | W_RESOLVE_NO_SYMLINKS | W_RESOLVE_NO_MAGICLINKS | W_RESOLVE_NO_XDEV;

struct removal {
	int report, top; /* top: the tree's own directory */
	unsigned moved;
	const char *path;
};

static _Noreturn void stop(const struct removal *r, const char *name)
{
	int error = errno;
	char subject[120];
	snprintf(subject, sizeof subject, "%.60s … %.40s", r->path, name);
	child_fail(r->report, "remove", error, error == EXDEV || error == EBUSY ? "a mount is in the way at" : "cannot remove", subject);
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

_Noreturn void remove_child(const char *root, const char *path, int report_fd)
{
	struct removal r = {.report = report_fd, .path = path};
	const char *below = path + strlen(root) + 1;
	int at = w_openat2(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0, W_RESOLVE_NO_SYMLINKS | W_RESOLVE_NO_MAGICLINKS);
	if (at < 0)
		stop(&r, root);
	/* The parent, then the last name in it: what is removed is a name in a directory we hold. */
	const char *last = strrchr(below, '/');
	int parent = at;
	if (last) {
		char *dir = strndup(below, (size_t)(last - below));
		parent = dir ? w_openat2(at, dir, O_PATH | O_DIRECTORY, 0, strict) : -1;
		free(dir);
		last++;
		if (parent < 0 && errno == ENOENT)
			_exit(0);
		if (parent < 0)
			stop(&r, below);
	} else {
		last = below;
	}
	struct stat st;
	if (fstatat(parent, last, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			_exit(0);
		stop(&r, last);
	}
	if (S_ISDIR(st.st_mode)) {
		r.top = w_openat2(parent, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, strict);
		int copy = r.top < 0 ? -1 : dup(r.top);
		if (copy < 0)
			stop(&r, last);
		empty(&r, copy, 0);
		close(r.top);
	}
	if (unlinkat(parent, last, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT)
		stop(&r, last);
	_exit(0);
}
