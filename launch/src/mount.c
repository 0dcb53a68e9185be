#define _GNU_SOURCE
#include "mount.h"
#include "report.h"
#include "sys.h"

#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

int open_path(const char *path, int flags)
{
	return w_openat2(AT_FDCWD, path, (uint64_t)flags, 0, W_RESOLVE_NO_SYMLINKS | W_RESOLVE_NO_MAGICLINKS);
}

int clone_mount(const char *step, const char *path, int userns, uint64_t attributes, bool *idmap, struct stat *st)
{
	int at = open_path(path, O_PATH);
	if (at < 0 || fstat(at, st) < 0)
		fail(step, "cannot open", path);
	int fd = w_open_tree(at, "", AT_EMPTY_PATH | W_OPEN_TREE_CLONE | W_OPEN_TREE_CLOEXEC);
	if (fd < 0)
		fail(step, "cannot clone the mount of", path);
	close(at);
	struct w_mount_attr attr = {.attr_set = attributes, .propagation = MS_PRIVATE};
	if (*idmap) {
		attr.attr_set |= W_MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)userns;
		if (w_mount_setattr(fd, 0, &attr) == 0)
			return fd;
		if (errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS && errno != EPERM)
			fail(step, "cannot map the owners of", path);
		*idmap = false;
		attr.attr_set = attributes;
		attr.userns_fd = 0;
	}
	if (w_mount_setattr(fd, 0, &attr) < 0)
		fail(step, "cannot set the mount flags of", path);
	return fd;
}

void attach(const char *step, int mount_fd, int dir, const char *name, const char *subject)
{
	if (w_move_mount(mount_fd, "", dir, name, W_MOVE_MOUNT_F_EMPTY_PATH) < 0)
		fail(step, "cannot attach", subject);
	close(mount_fd);
}

int bind_target(int root, const char *to, bool directory)
{
	const uint64_t resolve = W_RESOLVE_BENEATH | W_RESOLVE_NO_SYMLINKS | W_RESOLVE_NO_MAGICLINKS;
	int fd = w_openat2(root, to + 1, O_PATH, 0, resolve);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	int at = dup(root);
	char part[256];
	for (const char *p = to + 1; at >= 0 && *p;) {
		size_t n = strcspn(p, "/");
		memcpy(part, p, n); /* components are ≤ 255, checked by the parser */
		part[n] = 0;
		p += n;
		bool last = *p == 0;
		if (!last)
			p++;
		if (!last || directory) {
			if (mkdirat(at, part, 0755) < 0 && errno != EEXIST)
				return -1;
		} else {
			int file = openat(at, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
			if (file < 0 && errno != EEXIST)
				return -1;
			if (file >= 0)
				close(file);
		}
		int below = w_openat2(at, part, O_PATH, 0, resolve);
		int error = errno;
		close(at);
		errno = error;
		at = below;
	}
	return at;
}

const char *last_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

void mount_overlay(const struct start *s, int k, const char *target, const struct stat *upper)
{
	const struct overlay *o = &s->overlays[k];
	char options[2048] = "userxattr,lowerdir=";
	size_t used = strlen(options);
	for (int i = 0; i < o->lower_count; i++)
		used += (size_t)snprintf(options + used, sizeof options - used, i ? ":%d-%d" : "%d-%d", k, i);
	if (!o->upper && o->lower_count == 1) {
		if (mount(strchr(options, '=') + 1, target, NULL, MS_BIND, NULL) < 0)
			fail("overlay", "cannot bind the only layer", o->lowers[0]);
		return;
	}
	if (o->upper) {
		/* Seen through the clone: mapped or not, it must come out inside of the sandbox's range. */
		if (upper->st_uid - s->map_base >= s->map_size)
			fail_with(EACCES, "overlay", "the upper's owner is outside of the range (without idmap it must belong to the map's base)", o->upper);
		used += (size_t)snprintf(options + used, sizeof options - used, ",upperdir=rw/%s,workdir=rw/%s", last_name(o->upper), last_name(o->work));
	}
	if (used >= sizeof options)
		fail_with(ENAMETOOLONG, "overlay", "too many layers", NULL);
	if (mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		fail("overlay", "cannot mount", options);
}

void check_writable(const struct overlay *o, const char *target)
{
	struct statvfs vfs;
	if (o->upper && (statvfs(target, &vfs) < 0 || (vfs.f_flag & ST_RDONLY)))
		fail_with(EROFS, "overlay", "the upper came up read-only", o->upper);
}
