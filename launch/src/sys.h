/* Kernel interfaces that musl's headers do not have. Values are those of linux/mount.h, linux/openat2.h and friends. */
#ifndef WARREN_LAUNCH_SYS_H
#define WARREN_LAUNCH_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_move_mount
#define SYS_move_mount 429
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

#define W_OPEN_TREE_CLONE 1u
#define W_OPEN_TREE_CLOEXEC ((unsigned)O_CLOEXEC)
#define W_MOVE_MOUNT_F_EMPTY_PATH 0x04u
#define W_MOVE_MOUNT_T_EMPTY_PATH 0x40u
#define W_MOUNT_ATTR_RDONLY 0x01ull
#define W_MOUNT_ATTR_NOSUID 0x02ull
#define W_MOUNT_ATTR_NODEV 0x04ull
#define W_MOUNT_ATTR_IDMAP 0x00100000ull
#define W_RESOLVE_NO_XDEV 0x01ull
#define W_RESOLVE_NO_MAGICLINKS 0x02ull
#define W_RESOLVE_NO_SYMLINKS 0x04ull
#define W_RESOLVE_BENEATH 0x08ull
#define W_CLOSE_RANGE_CLOEXEC 4u
#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif
#define W_AT_RECURSIVE 0x8000u

#define W_CGROUP_MAGIC 0x27e0eb
#define W_CGROUP2_MAGIC 0x63677270

struct w_mount_attr {
	uint64_t attr_set, attr_clr, propagation, userns_fd;
};

struct w_open_how {
	uint64_t flags, mode, resolve;
};

static inline int w_open_tree(int dirfd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

static inline int w_move_mount(int from, const char *from_path, int to, const char *to_path, unsigned flags)
{
	return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

static inline int w_mount_setattr(int fd, unsigned flags, struct w_mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, fd, "", flags | AT_EMPTY_PATH, attr, sizeof *attr);
}

static inline int w_openat2(int dirfd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct w_open_how how = {flags | O_CLOEXEC, mode, resolve};
	return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof how);
}

static inline int w_pidfd_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline int w_pidfd_kill(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, 0, 0);
}

#endif
