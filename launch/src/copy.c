#define _GNU_SOURCE
#include "copy.h"
#include "below.h"
#include "remove.h"
#include "report.h"
#include "sys.h"

#include <dirent.h>
#include <endian.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define DEPTH_MAX 1024
#define RANGE 65536 /* ids of one sandbox */
#define NAMES_MAX 65536 /* of the attributes of one file: the kernel's own limits */
#define VALUE_MAX 65536
#define FICLONE_ _IOW(0x94, 9, int)
#define LINKS ".warren-links" /* one name for each file that has several: where its next name finds it */

static const uint64_t strict = W_RESOLVE_BENEATH | W_RESOLVE_NO_SYMLINKS | W_RESOLVE_NO_MAGICLINKS | W_RESOLVE_NO_XDEV;

static const struct errand *job;
static int links = -1;
static char buffer[1 << 16]; /* no threads, and nobody keeps it over a call */

static _Noreturn void stop(const char *name)
{
	fail("copy", "cannot copy", name);
}

/* Ids of the one sandbox become those of the other; whoever is neither stays. */
static uint32_t shifted(uint32_t id)
{
	return job->base && id >= job->base && id - job->base < RANGE ? id - job->base + job->to_base : id;
}

/* Some values hold ids: entries of access lists (tag, permissions, id), and the root that a capability is for. */
static void shift_value(const char *name, char *value, size_t size)
{
	uint32_t head, id;
	if (!job->base || size < sizeof head)
		return;
	memcpy(&head, value, sizeof head);
	if (strncmp(name, "system.posix_acl_", 17) == 0)
		for (size_t at = 4; at + 8 <= size; at += 8) {
			uint16_t tag;
			memcpy(&tag, value + at, sizeof tag);
			memcpy(&id, value + at + 4, sizeof id);
			id = htole32(shifted(le32toh(id)));
			if (le16toh(tag) == 0x02 || le16toh(tag) == 0x08)
				memcpy(value + at + 4, &id, sizeof id);
		}
	if (strcmp(name, "security.capability") == 0 && le32toh(head) >> 24 == 3 && size >= 24) {
		memcpy(&id, value + 20, sizeof id);
		id = htole32(shifted(le32toh(id)));
		memcpy(value + 20, &id, sizeof id);
	}
}

/* By name and not by descriptor: links and devices have attributes, too, and cannot be opened. */
static void copy_attributes(int from, int to, const char *name)
{
	static char names[NAMES_MAX], value[VALUE_MAX];
	char source[NAME_MAX + 40], target[NAME_MAX + 40];
	snprintf(source, sizeof source, "/proc/self/fd/%d/%s", from, name);
	snprintf(target, sizeof target, "/proc/self/fd/%d/%s", to, name);
	ssize_t total = llistxattr(source, names, sizeof names);
	if (total < 0 && errno != ENOTSUP)
		stop(name);
	for (char *one = names; one < names + total; one += strlen(one) + 1) {
		ssize_t size = lgetxattr(source, one, value, sizeof value);
		if (size < 0)
			stop(name);
		shift_value(one, value, (size_t)size);
		/* What the security modules of this machine add, they add to the copy as well. */
		if (lsetxattr(target, one, value, (size_t)size, 0) < 0 && strcmp(one, "security.selinux") != 0)
			stop(name);
	}
}

static void copy_range(int from, int to, off_t at, off_t end, const char *name)
{
	for (off_t there = at; at < end;) {
		ssize_t n = copy_file_range(from, &at, to, &there, (size_t)(end - at), 0);
		if (n < 0 && (errno == EOPNOTSUPP || errno == EXDEV || errno == EINVAL || errno == ENOSYS)) {
			size_t part = end - at > (off_t)sizeof buffer ? sizeof buffer : (size_t)(end - at);
			n = pread(from, buffer, part, at);
			if (n > 0 && pwrite(to, buffer, (size_t)n, at) != n)
				n = -1;
			at = there = at + (n > 0 ? n : 0);
		}
		if (n < 0)
			stop(name);
		if (n == 0)
			return; /* shorter than it was a moment ago: somebody writes to it all the same */
	}
}

/* Shares the bytes where the file system can; leaves out the holes where not. */
static void copy_bytes(int from, int to, off_t size, const char *name)
{
	if (size == 0 || ioctl(to, FICLONE_, from) == 0)
		return;
	if (ftruncate(to, size) < 0)
		stop(name);
	for (off_t at = 0, end; at < size; at = end) {
		at = lseek(from, at, SEEK_DATA);
		if (at < 0 && errno == ENXIO)
			return;
		end = at < 0 ? -1 : lseek(from, at, SEEK_HOLE);
		if (end < 0)
			stop(name);
		copy_range(from, to, at, end, name);
	}
}

static void copy_file(int from, int to, const char *name)
{
	struct stat st;
	int source = w_openat2(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, strict);
	int target = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (source < 0 || target < 0 || fstat(source, &st) < 0)
		stop(name);
	copy_bytes(source, target, st.st_size, name);
	close(source);
	if (close(target) < 0)
		stop(name);
}

static void copy_link(int from, int to, const char *name)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(from, name, text, sizeof text - 1);
	if (n < 0)
		stop(name);
	text[n] = 0;
	if (symlinkat(text, to, name) < 0)
		stop(name);
}

/* Last of all, and for a directory after its contents: writing changes times, and a new owner loses capabilities. */
static void copy_traits(int from, int to, const char *name, const struct stat *st)
{
	if (fchownat(to, name, shifted(st->st_uid), shifted(st->st_gid), AT_SYMLINK_NOFOLLOW) < 0)
		stop(name);
	if (!S_ISLNK(st->st_mode) && fchmodat(to, name, st->st_mode & 07777, 0) < 0)
		stop(name);
	copy_attributes(from, to, name);
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	if (utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		stop(name);
}

static void copy_contents(int source, int target, int depth);

static void copy_folder(int from, int to, const char *name, int depth)
{
	if (depth > DEPTH_MAX)
		fail_with(ENAMETOOLONG, "copy", "there are too many directories in each other", name);
	int source = w_openat2(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, strict);
	int target = mkdirat(to, name, 0700) < 0 ? -1 : w_openat2(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, strict);
	if (source < 0 || target < 0)
		stop(name);
	copy_contents(source, target, depth);
	close(target);
}

static void copy_entry(int from, int to, const char *name, int depth)
{
	struct stat st;
	char number[24] = "";
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		stop(name);
	if (!S_ISDIR(st.st_mode) && st.st_nlink > 1) {
		snprintf(number, sizeof number, "%llu", (unsigned long long)st.st_ino);
		if (linkat(links, number, to, name, 0) == 0)
			return;
		if (errno != ENOENT && errno != EMLINK)
			stop(name);
	}
	if (S_ISDIR(st.st_mode))
		copy_folder(from, to, name, depth + 1);
	else if (S_ISREG(st.st_mode))
		copy_file(from, to, name);
	else if (S_ISLNK(st.st_mode))
		copy_link(from, to, name);
	else if (mknodat(to, name, (st.st_mode & S_IFMT) | 0600, st.st_rdev) < 0)
		stop(name);
	copy_traits(from, to, name, &st);
	if (number[0] && linkat(to, name, links, number, 0) < 0 && errno != EEXIST && errno != EMLINK)
		stop(name);
}

/* Takes the source's descriptor over. */
static void copy_contents(int source, int target, int depth)
{
	DIR *dir = fdopendir(source);
	if (!dir)
		stop(".");
	for (struct dirent *entry; (errno = 0, entry = readdir(dir));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			copy_entry(source, target, entry->d_name, depth);
	if (errno)
		stop(".");
	closedir(dir);
}

void copy_tree(const struct errand *e)
{
	const char *last;
	struct stat st;
	job = e;
	int source = below_open(e->from, O_RDONLY | O_DIRECTORY, 0), to = below_parent(e->path, O_PATH, 0, &last);
	if (source < 0 || fstat(source, &st) < 0)
		fail("copy", "cannot open", e->from);
	if (to < 0 || mkdirat(to, last, 0700) < 0)
		fail("copy", "cannot make", e->path);
	int target = w_openat2(to, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, strict);
	if (target < 0 || mkdirat(target, LINKS, 0700) < 0 || (links = w_openat2(target, LINKS, O_RDONLY | O_DIRECTORY, 0, strict)) < 0)
		fail("copy", "cannot open", e->path);
	copy_contents(dup(source), target, 0);
	remove_name(target, LINKS, e->path);
	copy_traits(source, target, ".", &st);
}
