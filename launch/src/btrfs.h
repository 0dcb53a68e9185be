/* The ioctls of btrfs that layers need. All return −1 and errno on failure. */
#ifndef WARREN_LAUNCH_BTRFS_H
#define WARREN_LAUNCH_BTRFS_H

#include <stdbool.h>
#include <stdint.h>

enum quota { QUOTA_FULL = 1, QUOTA_SIMPLE = 4 };

bool btrfs_is(int fd);
/* The id of the subvolume whose top directory this is; 0: it is none. */
uint64_t subvolume_id(int fd);
int subvolume_create(int parent, const char *name);
/* parent and from: opened for reading (no O_PATH). */
int subvolume_snapshot(int parent, const char *name, int from, bool read_only);
int subvolume_destroy(int parent, const char *name);
/* fd: anything on the same file system. */
int subvolume_destroy_id(int fd, uint64_t id);
/* The first subvolume directly inside of that one, or 0. */
uint64_t subvolume_inside(int fd, uint64_t id);

/* Nothing changes when quotas are on already, of whatever kind. */
int quota_enable(int fd, enum quota kind);
/* 0: none. */
int quota_kind(int fd);
int quota_wait(int fd);
/* 0 bytes: no limit. */
int qgroup_limit(int fd, uint64_t id, uint64_t bytes);
/* As of the last commit. bytes_max 0: no limit. */
int qgroup_usage(int fd, uint64_t id, uint64_t *bytes, uint64_t *bytes_max);
/* EBUSY: something is still counted there. */
int qgroup_destroy(int fd, uint64_t id);
/* The qgroups of subvolumes that are no more. */
void qgroups_collect(int fd);

#endif
