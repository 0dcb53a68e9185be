#define _GNU_SOURCE
#include "tree.h"
#include "below.h"
#include "report.h"
#include "sys.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 1024 /* what is deeper is not counted */

static const uint64_t strict = W_RESOLVE_BENEATH | W_RESOLVE_NO_SYMLINKS | W_RESOLVE_NO_MAGICLINKS | W_RESOLVE_NO_XDEV;

static int make_folder(int top, const struct folder *f, uint32_t base)
{
	char parent[4096]; /* paths are ≤ 4000 */
	const char *last = strrchr(f->path, '/') + 1;
	snprintf(parent, sizeof parent, ".%.*s", (int)(last - f->path), f->path);
	int at = w_openat2(top, parent, O_PATH | O_DIRECTORY, 0, strict);
	if (at < 0 || (mkdirat(at, last, 0700) < 0 && errno != EEXIST))
		return -1;
	int fd = w_openat2(at, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, strict);
	if (fd < 0 || fchown(fd, base + f->owner, base + f->owner) < 0 || fchmod(fd, (mode_t)f->mode) < 0)
		return -1;
	close(fd);
	return close(at);
}

void tree_folders(const struct errand *e)
{
	int top = below_open(e->path, O_PATH | O_DIRECTORY, W_RESOLVE_NO_XDEV);
	if (top < 0)
		fail("folders", "cannot open", e->path);
	for (int i = 0; i < e->folder_count; i++)
		if (make_folder(top, &e->folders[i], e->base) < 0)
			fail("folders", "cannot make", e->folders[i].path);
}

/* Takes the descriptor over. A file with n names below counts n times an n-th. */
static uint64_t blocks_below(int fd, int depth)
{
	DIR *dir = fdopendir(fd);
	uint64_t sum = 0;
	if (!dir) {
		close(fd);
		return 0;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		struct stat st;
		const char *name = entry->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bool folder = S_ISDIR(st.st_mode);
		sum += (uint64_t)st.st_blocks / (folder || st.st_nlink < 1 ? 1 : (uint64_t)st.st_nlink);
		int below = folder && depth < DEPTH_MAX ? w_openat2(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, strict) : -1;
		if (below >= 0)
			sum += blocks_below(below, depth + 1);
	}
	closedir(dir);
	return sum;
}

void tree_usage(const struct errand *e)
{
	struct report r = {0};
	int fd = below_open(e->path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		fail("usage", "cannot open", e->path);
	snprintf(r.answer, sizeof r.answer, "\"bytes\":%llu", (unsigned long long)blocks_below(fd, 0) * 512);
	if (!report_send(&r, -1))
		_exit(1);
}
