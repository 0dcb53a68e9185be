#define _GNU_SOURCE
#include "layer.h"
#include "below.h"
#include "btrfs.h"
#include "remove.h"
#include "report.h"
#include "sys.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

static const uint64_t strict = W_RESOLVE_BENEATH | W_RESOLVE_NO_SYMLINKS | W_RESOLVE_NO_MAGICLINKS | W_RESOLVE_NO_XDEV;

__attribute__((format(printf, 1, 2))) static void answer(const char *format, ...)
{
	struct report r = {0};
	va_list list;
	va_start(list, format);
	vsnprintf(r.answer, sizeof r.answer, format, list);
	va_end(list);
	if (!report_send(&r, -1))
		_exit(1);
}

void volume_open(const struct errand *e)
{
	int fd = below_open(e->path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		fail("volume", "cannot open", e->path);
	if (!btrfs_is(fd))
		fail_with(ENOTSUP, "volume", "not on a btrfs", e->path);
	/* Kernels before 6.7 know only the full ones. */
	if (quota_enable(fd, QUOTA_SIMPLE) < 0 && (errno != EINVAL || quota_enable(fd, QUOTA_FULL) < 0))
		fail("volume", "cannot enable quotas", e->path);
	int kind = quota_kind(fd);
	if (kind <= 0)
		fail("volume", "cannot read the quotas", e->path);
	if (kind == QUOTA_FULL && quota_wait(fd) < 0)
		fail("volume", "cannot count", e->path);
	qgroups_collect(fd);
	answer("\"quota\":\"%s\"", kind == QUOTA_SIMPLE ? "simple" : "full");
}

/* Also of a mount below the root: that is how a volume gets there. */
static int open_parent(const char *path, const char **last)
{
	int parent = below_parent(path, O_RDONLY, 0, last);
	if (parent < 0)
		fail("layer", "cannot open the directory of", path);
	if (!btrfs_is(parent))
		fail_with(ENOTSUP, "layer", "not on a btrfs", path);
	return parent;
}

static int open_layer(const char *path, uint64_t *id)
{
	int fd = below_open(path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		fail("layer", "cannot open", path);
	if (!btrfs_is(fd))
		fail_with(ENOTSUP, "layer", "not on a btrfs", path);
	if (!(*id = subvolume_id(fd)))
		fail_with(EINVAL, "layer", "not a subvolume", path);
	return fd;
}

/* A new one gets its limit, or it goes again. */
static void finish(const struct errand *e, int parent, const char *last)
{
	int fd = w_openat2(parent, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, strict);
	uint64_t id = fd < 0 ? 0 : subvolume_id(fd);
	if (id && (e->bytes_max == 0 || qgroup_limit(fd, id, e->bytes_max) == 0))
		return;
	int error = errno;
	if (fd >= 0)
		close(fd);
	subvolume_destroy(parent, last);
	fail_with(error, "layer", error == ENOTCONN ? "no quotas (volume.open)" : "cannot limit", e->path);
}

void layer_create(const struct errand *e)
{
	const char *last;
	int parent = open_parent(e->path, &last);
	umask(077);
	if (subvolume_create(parent, last) < 0)
		fail("layer", "cannot create", e->path);
	finish(e, parent, last);
}

void layer_snapshot(const struct errand *e)
{
	uint64_t id;
	const char *last;
	int from = open_layer(e->from, &id), parent = open_parent(e->path, &last);
	if (subvolume_snapshot(parent, last, from, e->read_only) < 0)
		fail("layer", "cannot snapshot to", e->path);
	finish(e, parent, last);
}

void layer_limit(const struct errand *e)
{
	uint64_t id;
	int fd = open_layer(e->path, &id);
	if (qgroup_limit(fd, id, e->bytes_max) < 0)
		fail("layer", "cannot limit", e->path);
}

void layer_usage(const struct errand *e)
{
	uint64_t id, bytes, bytes_max;
	int fd = open_layer(e->path, &id);
	if (qgroup_usage(fd, id, &bytes, &bytes_max) < 0)
		fail("layer", "cannot read the usage of", e->path);
	answer("\"bytes\":%llu,\"bytesMax\":%llu", (unsigned long long)bytes, (unsigned long long)bytes_max);
}

/* What was made inside (anybody may make subvolumes in a directory of theirs) goes first, the innermost before all. */
static int destroy_inside(int fd, uint64_t id)
{
	for (uint64_t inner; (inner = subvolume_inside(fd, id));) {
		uint64_t outer = id;
		for (uint64_t next; (next = subvolume_inside(fd, inner)); inner = next)
			outer = inner;
		if (subvolume_destroy_id(fd, inner) < 0 && errno != ENOTEMPTY)
			return -1;
		if (subvolume_inside(fd, outer) == inner) { /* still there: more was made meanwhile */
			errno = ENOTEMPTY;
			return -1;
		}
		qgroup_destroy(fd, inner);
	}
	return 0;
}

void layer_remove(const struct errand *e)
{
	const char *last;
	int parent = below_parent(e->path, O_RDONLY, 0, &last);
	if (parent < 0) {
		if (errno == ENOENT)
			return;
		fail("layer", "cannot open the directory of", e->path);
	}
	int fd = w_openat2(parent, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, strict);
	uint64_t id = fd < 0 ? 0 : subvolume_id(fd);
	if (fd >= 0)
		close(fd);
	if (!id) {
		remove_name(parent, last, e->path);
		return;
	}
	/* The first try is nearly always enough. Whoever has it mounted keeps a file system without names in it. */
	int result = subvolume_destroy(parent, last);
	for (int tries = 0; result < 0 && (errno == ENOTEMPTY || errno == EDQUOT) && tries < 100; tries++) {
		qgroup_limit(parent, id, 0); /* a full one could not even forget the names inside */
		if (destroy_inside(parent, id) < 0 && errno != ENOTEMPTY)
			break;
		result = subvolume_destroy(parent, last);
	}
	if (result < 0 && errno != ENOENT)
		fail("layer", "cannot remove", e->path);
	/* Busy as long as the cleaner is at it, or a snapshot holds what this one wrote: a new kernel removes it with the
	 * subvolume (6.18 does), volume.open collects what is left. */
	qgroup_destroy(parent, id);
}
