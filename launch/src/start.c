#define _GNU_SOURCE
#include "start.h"
#include "sys.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <grp.h>

static int report_to = -1;

_Noreturn void child_fail(int report_fd, const char *step, int error, const char *message, const char *subject)
{
	struct report r = {.failed = true, .error = error};
	snprintf(r.step, sizeof r.step, "%s", step);
	if (subject)
		snprintf(r.message, sizeof r.message, "%s: %.120s", message, subject);
	else
		snprintf(r.message, sizeof r.message, "%s", message);
	send(report_fd, &r, sizeof r, MSG_NOSIGNAL);
	_exit(1);
}

static _Noreturn void fail(const char *step, const char *message, const char *subject)
{
	child_fail(report_to, step, errno, message, subject);
}

static uint64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

/* An absolute path opened without following any symbolic link on the way. */
static int open_path(const char *path, int flags)
{
	return w_openat2(AT_FDCWD, path, (uint64_t)flags, 0, W_RESOLVE_NO_SYMLINKS | W_RESOLVE_NO_MAGICLINKS);
}

static void write_at(int dir, const char *name, const char *text, const char *step, const char *subject)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail(step, "cannot write", subject);
	close(fd);
}

/* v1: writing 0 to `tasks` moves this single thread in 0.03 ms; cgroup.procs waits for an RCU grace period (14 ms). */
static void join_cgroups(const struct start *s)
{
	for (int i = 0; i < s->cgroup_count; i++) {
		int dir = open_path(s->cgroups[i], O_RDONLY | O_DIRECTORY);
		struct statfs fs;
		if (dir < 0 || fstatfs(dir, &fs) < 0)
			fail("cgroup", "cannot open", s->cgroups[i]);
		if (fs.f_type == W_CGROUP_MAGIC)
			write_at(dir, "tasks", "0", "cgroup", s->cgroups[i]);
		else if (fs.f_type == W_CGROUP2_MAGIC)
			write_at(dir, "cgroup.procs", "0", "cgroup", s->cgroups[i]);
		else {
			errno = ENOTSUP;
			fail("cgroup", "not a cgroup", s->cgroups[i]);
		}
		close(dir);
	}
}

static void make_socket(const struct start *s)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;
	if (lstat(s->socket, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(s->socket);
	strcpy(address.sun_path, s->socket); /* length was checked by the parser */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	mode_t before = umask(0177);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, s->backlog) < 0)
		fail("socket", "cannot listen on", s->socket);
	umask(before);
	/* The launcher keeps its own descriptors from 16 up, so 3 is free; whatever is opened later is above. */
	if (fd != 3 && (dup3(fd, 3, O_CLOEXEC) < 0 || close(fd) < 0))
		fail("socket", "cannot arrange the descriptors", NULL);
}

static int namespace_holder(void *parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != *(pid_t *)parent)
		_exit(0);
	for (;;)
		pause();
}

/* A user namespace with the map [0, size) → [base, base + size), written by the real root. */
static int make_userns(const struct start *s)
{
	static char stack[8192] __attribute__((aligned(16)));
	static pid_t self;
	self = getpid();
	pid_t holder = clone(namespace_holder, stack + sizeof stack, CLONE_VM | CLONE_NEWUSER | SIGCHLD, &self);
	if (holder < 0)
		fail("userns", "cannot make a user namespace", NULL);
	char path[64], map[64];
	snprintf(path, sizeof path, "/proc/%d", (int)holder);
	snprintf(map, sizeof map, "0 %u %u\n", s->map_base, s->map_size);
	int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		fail("userns", "cannot open", path);
	write_at(dir, "uid_map", map, "userns", "uid_map");
	write_at(dir, "gid_map", map, "userns", "gid_map");
	int fd = openat(dir, "ns/user", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail("userns", "cannot open", "ns/user");
	close(dir);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	return fd;
}

/* A detached private copy of one mount (nothing mounted below it), id-mapped where the file system can. */
static int clone_mount(const char *step, const char *path, int userns, uint64_t attributes, bool *idmap, struct stat *st)
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
		if (errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS)
			fail(step, "cannot map the owners of", path);
		*idmap = false;
		attr.attr_set = attributes;
		attr.userns_fd = 0;
	}
	if (w_mount_setattr(fd, 0, &attr) < 0)
		fail(step, "cannot set the mount flags of", path);
	return fd;
}

static void attach(const char *step, int mount_fd, int dir, const char *name, const char *subject)
{
	if (w_move_mount(mount_fd, "", dir, name, W_MOVE_MOUNT_F_EMPTY_PATH) < 0)
		fail(step, "cannot attach", subject);
	close(mount_fd);
}

/* Opens `to` below root, creating what is missing. No component may be a symbolic link: the content is not ours. */
static int bind_target(int root, const char *to, bool directory)
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

static const char *last_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* Stage names: layer i of overlay k is "k-i", the directory of all uppers and works is "rw". Relative names keep the options
 * short, and the host's paths out of the sandbox's mountinfo. */
static void mount_overlay(const struct start *s, int k, const char *target, const struct stat *upper)
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
		if (upper->st_uid - s->map_base >= s->map_size) {
			errno = EACCES;
			fail("overlay", "the upper's owner is outside of the range (without idmap it must belong to the map's base)", o->upper);
		}
		used += (size_t)snprintf(options + used, sizeof options - used, ",upperdir=rw/%s,workdir=rw/%s", last_name(o->upper), last_name(o->work));
	}
	if (used >= sizeof options) {
		errno = ENAMETOOLONG;
		fail("overlay", "too many layers", NULL);
	}
	if (mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		fail("overlay", "cannot mount", options);
}

/* Without the right owners an overlay comes up read-only and says nothing. */
static void check_writable(const struct overlay *o, const char *target)
{
	struct statvfs vfs;
	if (o->upper && (statvfs(target, &vfs) < 0 || (vfs.f_flag & ST_RDONLY))) {
		errno = EROFS;
		fail("overlay", "the upper came up read-only", o->upper);
	}
}

static void write_limits(const struct start *s)
{
	char path[96], value[32];
	for (int i = 0; i < s->limit_count; i++) {
		snprintf(path, sizeof path, "/proc/sys/user/%s", s->limits[i].name);
		snprintf(value, sizeof value, "%lld", (long long)s->limits[i].value);
		write_at(AT_FDCWD, path, value, "limits", s->limits[i].name);
	}
}

/* The last word before the exec: the stage's directory goes along, so that the launcher can read the pid file. */
static void send_ready(struct report *r, int stage)
{
	union { char space[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control;
	memset(&control, 0, sizeof control);
	struct iovec io = {.iov_base = r, .iov_len = sizeof *r};
	struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &stage, sizeof stage);
	if (sendmsg(report_to, &message, MSG_NOSIGNAL) < 0)
		fail("report", "cannot report", NULL);
}

_Noreturn void start_child(const struct start *s, int report_fd, int stdin_fd, int output_fd)
{
	struct report ready = {.idmap_lower = true, .idmap_upper = s->idmap};
	uint64_t t0 = now_us(), t1;
	report_to = report_fd;
	pid_t launcher = getppid();
#define LAP(i) (t1 = now_us(), ready.step_us[i] = (uint32_t)(t1 - t0), t0 = t1)

	/* crun gives its standard streams to the sandbox's user: let it, they are ours alone. */
	if (fchown(stdin_fd, s->map_base, s->map_base) < 0 || fchown(output_fd, s->map_base, s->map_base) < 0)
		fail("stdio", "cannot chown a pipe", NULL);
	join_cgroups(s);
	make_socket(s);
	LAP(0);
	int userns = make_userns(s);
	struct stat st, upper_st[OVERLAYS_MAX] = {0};
	if (fstat(userns, &st) < 0)
		fail("userns", "cannot stat", NULL);
	ready.userns = st.st_ino;
	LAP(1);

	static int lower[OVERLAYS_MAX][LOWERS_MAX];
	int bound[BINDS_MAX], writable = -1;
	bool bind_directory[BINDS_MAX];
	for (int k = 0; k < s->overlay_count; k++) {
		const struct overlay *o = &s->overlays[k];
		for (int i = 0; i < o->lower_count; i++) {
			bool idmap = s->idmap;
			lower[k][i] = clone_mount("lower", o->lowers[i], userns, W_MOUNT_ATTR_RDONLY | W_MOUNT_ATTR_NOSUID | W_MOUNT_ATTR_NODEV, &idmap, &st);
			if (!S_ISDIR(st.st_mode)) {
				errno = ENOTDIR;
				fail("lower", "not a directory", o->lowers[i]);
			}
			ready.idmap_lower = ready.idmap_lower && idmap;
		}
		if (!o->upper)
			continue;
		if (writable < 0) { /* upper and work must be on one mount: clone their parent */
			char parent[4096];
			size_t n = (size_t)(last_name(o->upper) - o->upper - 1);
			memcpy(parent, o->upper, n);
			parent[n] = 0;
			writable = clone_mount("upper", parent, userns, W_MOUNT_ATTR_NOSUID | W_MOUNT_ATTR_NODEV, &ready.idmap_upper, &st);
		}
		if (fstatat(writable, last_name(o->upper), &upper_st[k], AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(upper_st[k].st_mode))
			fail("upper", "no such directory", o->upper);
	}
	for (int i = 0; i < s->bind_count; i++) {
		const struct bind *b = &s->binds[i];
		bool idmap = b->idmap;
		bound[i] = clone_mount("bind", b->from, userns, W_MOUNT_ATTR_NOSUID | W_MOUNT_ATTR_NODEV | (b->read_only ? W_MOUNT_ATTR_RDONLY : 0), &idmap, &st);
		if (b->idmap && !idmap && !b->read_only) {
			errno = EOPNOTSUPP;
			fail("bind", "the owners cannot be mapped on this file system", b->from);
		}
		bind_directory[i] = S_ISDIR(st.st_mode);
		if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISSOCK(st.st_mode)) {
			errno = EINVAL;
			fail("bind", "neither directory, file nor socket", b->from);
		}
	}
	/* crun and runc copy themselves and execute the copy, so that a sandbox cannot write to their binary (CVE-2019-5736);
	 * that costs 2.5 ms of dynamic linking. A read-only mount of the binary is what they want to see and protects as well. */
	bool plain = false;
	int runtime = clone_mount("runtime", s->runtime[0], userns, W_MOUNT_ATTR_RDONLY | W_MOUNT_ATTR_NOSUID | W_MOUNT_ATTR_NODEV, &plain, &st);
	int libraries = s->libraries ? clone_mount("runtime", s->libraries, userns, W_MOUNT_ATTR_RDONLY | W_MOUNT_ATTR_NOSUID | W_MOUNT_ATTR_NODEV, &plain, &st) : -1;
	LAP(2);

	if (setns(userns, CLONE_NEWUSER) < 0 || setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		fail("enter", "cannot become root of the user namespace", NULL);
	if (unshare(CLONE_NEWNS) < 0)
		fail("enter", "cannot make a mount namespace", NULL);
	write_limits(s);
	umask(022);
	if (mount("stage", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=700,size=4m,nr_inodes=512") < 0 || chdir(STAGE) < 0)
		fail("stage", "cannot mount a tmpfs on", STAGE);
	int stage = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int config = open("config.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (stage < 0 || config < 0 || write(config, s->config, s->config_length) != (ssize_t)s->config_length || mkdir("root", 0755) < 0 || mkdir("state", 0700) < 0)
		fail("stage", "cannot write the bundle", NULL);
	close(config);
	if (libraries >= 0) {
		if (mkdirat(stage, "lib", 0755) < 0)
			fail("stage", "cannot make a mount point", "lib");
		attach("runtime", libraries, stage, "lib", s->libraries);
	}
	LAP(3);

	char name[32];
	for (int k = 0; k < s->overlay_count; k++)
		for (int i = 0; i < s->overlays[k].lower_count; i++) {
			snprintf(name, sizeof name, "%d-%d", k, i);
			if (mkdirat(stage, name, 0700) < 0)
				fail("lower", "cannot make a mount point", name);
			attach("lower", lower[k][i], stage, name, s->overlays[k].lowers[i]);
		}
	if (writable >= 0) {
		if (mkdirat(stage, "rw", 0700) < 0)
			fail("upper", "cannot make a mount point", NULL);
		attach("upper", writable, stage, "rw", "the directory of upper and work");
	}
	mount_overlay(s, 0, "root", &upper_st[0]);
	check_writable(&s->overlays[0], "root");
	int root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC), covered[OVERLAYS_MAX];
	if (root < 0)
		fail("overlay", "cannot open the root", NULL);
	for (int k = 1; k < s->overlay_count; k++) {
		int target = bind_target(root, s->overlays[k].to, true);
		if (target < 0)
			fail("overlay", "cannot open the target", s->overlays[k].to);
		snprintf(name, sizeof name, "/proc/self/fd/%d", target);
		mount_overlay(s, k, name, &upper_st[k]);
		close(target);
		covered[k] = bind_target(root, s->overlays[k].to, true);
		snprintf(name, sizeof name, "/proc/self/fd/%d", covered[k]);
		check_writable(&s->overlays[k], name);
	}
	LAP(4);
	for (int i = 0; i < s->bind_count; i++) {
		int target = bind_target(root, s->binds[i].to, bind_directory[i]);
		if (target < 0)
			fail("bind", "cannot open the target", s->binds[i].to);
		if (w_move_mount(bound[i], "", target, "", W_MOVE_MOUNT_F_EMPTY_PATH | W_MOVE_MOUNT_T_EMPTY_PATH) < 0)
			fail("bind", "cannot attach at", s->binds[i].to);
	}
	/* Only now, so that the targets could be made in the upper; that one mount alone, not what is mounted below it. */
	struct w_mount_attr read_only = {.attr_set = W_MOUNT_ATTR_RDONLY};
	for (int k = 1; k < s->overlay_count; k++)
		if (s->overlays[k].read_only && w_mount_setattr(covered[k], 0, &read_only) < 0)
			fail("overlay", "cannot make read-only", s->overlays[k].to);
	LAP(5);

	sigset_t none;
	sigemptyset(&none);
	/* A half-made sandbox does not outlive the launcher. (Cleared by the fork of what the runtime starts.) */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher)
		_exit(1);
	send_ready(&ready, stage);
	if (dup2(stdin_fd, 0) < 0 || dup2(output_fd, 1) < 0 || dup2(output_fd, 2) < 0 || fcntl(3, F_SETFD, 0) < 0)
		fail("runtime", "cannot arrange the descriptors", NULL);
	/* Whatever else is open is the launcher's: none of it reaches the runtime. */
	syscall(SYS_close_range, 4u, ~0u, W_CLOSE_RANGE_CLOEXEC);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	char cloned[] = "_LIBCONTAINER_CLONED_BINARY=1", path[] = "LD_LIBRARY_PATH=" STAGE "/lib";
	char *environment[] = {cloned, s->libraries ? path : NULL, NULL};
	syscall(SYS_execveat, runtime, "", s->runtime, environment, AT_EMPTY_PATH);
	fail("runtime", "cannot execute", s->runtime[0]);
}
