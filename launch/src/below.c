#define _GNU_SOURCE
#include "below.h"
#include "request.h"
#include "sys.h"

#include <string.h>

static int open_at(const char *root, const char *path, int flags, uint64_t more)
{
	const uint64_t rules = W_RESOLVE_NO_SYMLINKS | W_RESOLVE_NO_MAGICLINKS;
	int at = w_openat2(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0, rules);
	if (at < 0)
		return -1;
	int fd = w_openat2(at, path, (uint64_t)flags, 0, rules | W_RESOLVE_BENEATH | more);
	int error = errno;
	close(at);
	errno = error;
	return fd;
}

int below_open(const char *path, int flags, uint64_t more)
{
	const char *root = root_of(path); /* the request was refused if there is none */
	return open_at(root, path + strlen(root) + 1, flags, more);
}

int below_parent(const char *path, int flags, uint64_t more, const char **last)
{
	const char *root = root_of(path), *below = path + strlen(root) + 1;
	char parent[4096]; /* paths are ≤ 4000 */
	*last = strrchr(path, '/') + 1;
	size_t n = *last > below ? (size_t)(*last - below - 1) : 0;
	memcpy(parent, n ? below : ".", n ? n : 1);
	parent[n ? n : 1] = 0;
	return open_at(root, parent, flags | O_DIRECTORY, more);
}
