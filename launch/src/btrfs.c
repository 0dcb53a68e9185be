/* Layouts and numbers are those of linux/btrfs.h and linux/btrfs_tree.h, which musl's compiler does not find. */
#define _GNU_SOURCE
#include "btrfs.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#define MAGIC 0x9123683E
#define FIRST_ID 256 /* of subvolumes, and the inode of each one's top directory */

struct volume_args { /* btrfs_ioctl_vol_args */
	int64_t fd;
	char name[4088];
};

struct volume_args_v2 {
	int64_t fd;
	uint64_t transid, flags, unused[4];
	union { char name[4040]; uint64_t id; } who;
};

struct lookup_args {
	uint64_t tree, object;
	char name[4080];
};

struct key {
	uint64_t object;
	uint32_t type;
	uint64_t offset;
};

struct search_args {
	uint64_t tree, min_object, max_object, min_offset, max_offset, min_transid, max_transid;
	uint32_t min_type, max_type, items, unused;
	uint64_t more[4];
	struct { uint64_t transid, object, offset; uint32_t type, length; } found;
	unsigned char payload[4096 - 104 - 32];
};

struct quota_args { uint64_t command, status; };
struct create_args { uint64_t create, id; };
struct limit_args { uint64_t id, flags, max_referenced, max_exclusive, rsv_referenced, rsv_exclusive; };

#define IOC_SUBVOL_CREATE _IOW(0x94, 14, struct volume_args)
#define IOC_SNAP_DESTROY _IOW(0x94, 15, struct volume_args)
#define IOC_TREE_SEARCH _IOWR(0x94, 17, struct search_args)
#define IOC_INO_LOOKUP _IOWR(0x94, 18, struct lookup_args)
#define IOC_SNAP_CREATE_V2 _IOW(0x94, 23, struct volume_args_v2)
#define IOC_QUOTA_CTL _IOWR(0x94, 40, struct quota_args)
#define IOC_QGROUP_CREATE _IOW(0x94, 42, struct create_args)
#define IOC_QGROUP_LIMIT _IOR(0x94, 43, struct limit_args)
#define IOC_QUOTA_RESCAN_WAIT _IO(0x94, 46)
#define IOC_SNAP_DESTROY_V2 _IOW(0x94, 63, struct volume_args_v2)

_Static_assert(sizeof(struct volume_args) == 4096 && sizeof(struct volume_args_v2) == 4096, "as the kernel has it");
_Static_assert(sizeof(struct lookup_args) == 4096 && sizeof(struct search_args) == 4096, "as the kernel has it");

enum { SNAPSHOT_READ_ONLY = 1 << 1, BY_ID = 1 << 4, LIMIT_REFERENCED = 1, STATUS_SIMPLE = 1 << 3 };
enum { ROOT_TREE = 1, QUOTA_TREE = 8 };
enum { ROOT_ITEM = 132, ROOT_REF = 156, QGROUP_STATUS = 240, QGROUP_INFO = 242, QGROUP_LIMIT = 244 };

bool btrfs_is(int fd)
{
	struct statfs fs;
	return fstatfs(fd, &fs) == 0 && (uint32_t)fs.f_type == MAGIC;
}

uint64_t subvolume_id(int fd)
{
	struct stat st;
	static struct lookup_args a;
	a = (struct lookup_args){.object = FIRST_ID};
	if (!btrfs_is(fd) || fstat(fd, &st) < 0 || st.st_ino != FIRST_ID || ioctl(fd, IOC_INO_LOOKUP, &a) < 0)
		return 0;
	return a.tree;
}

static int by_name(int parent, unsigned long request, const char *name)
{
	static struct volume_args a;
	snprintf(a.name, sizeof a.name, "%s", name);
	return ioctl(parent, request, &a);
}

int subvolume_create(int parent, const char *name)
{
	return by_name(parent, IOC_SUBVOL_CREATE, name);
}

int subvolume_destroy(int parent, const char *name)
{
	return by_name(parent, IOC_SNAP_DESTROY, name);
}

int subvolume_snapshot(int parent, const char *name, int from, bool read_only)
{
	static struct volume_args_v2 a;
	a = (struct volume_args_v2){.fd = from, .flags = read_only ? SNAPSHOT_READ_ONLY : 0};
	snprintf(a.who.name, sizeof a.who.name, "%s", name);
	return ioctl(parent, IOC_SNAP_CREATE_V2, &a);
}

int subvolume_destroy_id(int fd, uint64_t id)
{
	static struct volume_args_v2 a;
	a = (struct volume_args_v2){.flags = BY_ID, .who.id = id};
	return ioctl(fd, IOC_SNAP_DESTROY_V2, &a);
}

/* The first item of a tree at or after the key, with the same object and type. values: how many numbers of it are wanted.
 * 1: found, and the key is that item's; 0: there is none. */
static int tree_find(int fd, uint64_t tree, struct key *key, uint64_t *values, size_t count)
{
	static struct search_args a;
	a = (struct search_args){.tree = tree, .min_object = key->object, .max_object = key->object, .min_type = key->type, .max_type = key->type, .min_offset = key->offset, .max_offset = UINT64_MAX, .max_transid = UINT64_MAX, .items = 1};
	if (ioctl(fd, IOC_TREE_SEARCH, &a) < 0)
		return -1;
	if (a.items == 0)
		return 0;
	key->offset = a.found.offset;
	for (size_t i = 0; i < count; i++) {
		uint64_t v = 0;
		if ((i + 1) * sizeof v <= a.found.length)
			memcpy(&v, a.payload + i * sizeof v, sizeof v);
		values[i] = le64toh(v);
	}
	return 1;
}

uint64_t subvolume_inside(int fd, uint64_t id)
{
	struct key key = {id, ROOT_REF, 0};
	return tree_find(fd, ROOT_TREE, &key, NULL, 0) > 0 ? key.offset : 0;
}

int quota_enable(int fd, enum quota kind)
{
	struct quota_args a = {.command = kind};
	return ioctl(fd, IOC_QUOTA_CTL, &a);
}

int quota_kind(int fd)
{
	struct key key = {0, QGROUP_STATUS, 0};
	uint64_t status[3]; /* version, generation, flags */
	int found = tree_find(fd, QUOTA_TREE, &key, status, 3);
	if (found < 0)
		return errno == ENOENT ? 0 : -1;
	return found == 0 ? 0 : status[2] & STATUS_SIMPLE ? QUOTA_SIMPLE : QUOTA_FULL;
}

int quota_wait(int fd)
{
	return ioctl(fd, IOC_QUOTA_RESCAN_WAIT);
}

int qgroup_limit(int fd, uint64_t id, uint64_t bytes)
{
	struct limit_args a = {.id = id, .flags = LIMIT_REFERENCED, .max_referenced = bytes ? bytes : UINT64_MAX};
	return ioctl(fd, IOC_QGROUP_LIMIT, &a);
}

int qgroup_usage(int fd, uint64_t id, uint64_t *bytes, uint64_t *bytes_max)
{
	struct key key = {0, QGROUP_INFO, id};
	uint64_t info[2], limit[2]; /* generation, referenced; flags, max_referenced */
	int found = tree_find(fd, QUOTA_TREE, &key, info, 2);
	if (found < 0) {
		errno = errno == ENOENT ? ENOTCONN : errno; /* no quota tree */
		return -1;
	}
	if (found == 0 || key.offset != id) {
		errno = ENOENT;
		return -1;
	}
	key = (struct key){0, QGROUP_LIMIT, id};
	found = tree_find(fd, QUOTA_TREE, &key, limit, 2);
	*bytes = info[1];
	*bytes_max = found > 0 && key.offset == id && limit[0] & LIMIT_REFERENCED ? limit[1] : 0;
	return found < 0 ? -1 : 0;
}

int qgroup_destroy(int fd, uint64_t id)
{
	struct create_args a = {.create = 0, .id = id};
	return ioctl(fd, IOC_QGROUP_CREATE, &a);
}

void qgroups_collect(int fd)
{
	struct key group = {0, QGROUP_INFO, FIRST_ID};
	/* The upper 16 bits of an id are its level; 0 is that of subvolumes. */
	for (; tree_find(fd, QUOTA_TREE, &group, NULL, 0) > 0 && group.offset >> 48 == 0; group.offset++) {
		struct key root = {group.offset, ROOT_ITEM, 0};
		if (tree_find(fd, ROOT_TREE, &root, NULL, 0) == 0)
			qgroup_destroy(fd, group.offset);
	}
}
