#define _GNU_SOURCE
#include "start.h"
#include "mount.h"
#include "outer.h"
#include "report.h"
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
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <grp.h>

static uint64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
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
			fail_with(ENOTSUP, "cgroup", "not a cgroup", s->cgroups[i]);
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
	/* Made by the sandbox's own root: what is counted per user (inotify, …) is then counted for it, not for the host's root,
	 * who would otherwise share one allowance with every sandbox. */
	if (syscall(SYS_setresuid, -1, s->map_base, -1) < 0)
		fail("userns", "cannot take the user of the range", NULL);
	pid_t holder = clone(namespace_holder, stack + sizeof stack, CLONE_VM | CLONE_NEWUSER | SIGCHLD, &self);
	int error = errno;
	if (syscall(SYS_setresuid, -1, 0, -1) < 0)
		fail("userns", "cannot become root again", NULL);
	/* Who changes ids cannot be looked into; without root that includes the map that is written below. */
	prctl(PR_SET_DUMPABLE, 1);
	errno = error;
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
	/* Asks for no capability and can be written once: left empty, anybody inside could take the host's project ids, and with them
	 * its quotas. Without root there are none to be had in the namespace around, and the write is refused to everybody. */
	int projects = openat(dir, "projid_map", O_WRONLY | O_CLOEXEC);
	if (projects < 0 || (write(projects, map, strlen(map)) < 0 && errno != EPERM))
		fail("userns", "cannot write", "projid_map");
	close(projects);
	int fd = openat(dir, "ns/user", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail("userns", "cannot open", "ns/user");
	close(dir);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	return fd;
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

_Noreturn void start_child(const struct start *s, pid_t launcher, int report_fd, int stdin_fd, int output_fd)
{
	struct report ready = {.idmap_lower = true, .idmap_upper = s->idmap};
	uint64_t t0 = now_us(), t1;
	report_open(report_fd);
#define LAP(i) (t1 = now_us(), ready.step_us[i] = (uint32_t)(t1 - t0), t0 = t1)

	if (!outer_enter())
		fail("userns", "cannot enter the namespaces of the user", NULL);
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
			if (!S_ISDIR(st.st_mode))
				fail_with(ENOTDIR, "lower", "not a directory", o->lowers[i]);
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
		if (b->idmap && !idmap && !b->read_only)
			fail_with(EOPNOTSUPP, "bind", "the owners cannot be mapped on this file system", b->from);
		bind_directory[i] = S_ISDIR(st.st_mode);
		if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISSOCK(st.st_mode))
			fail_with(EINVAL, "bind", "neither directory, file nor socket", b->from);
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
	if (mount("stage", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=711,size=4m,nr_inodes=512") < 0 || chdir(STAGE) < 0)
		fail("stage", "cannot mount a tmpfs on", STAGE);
	int stage = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int config = open("config.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (stage < 0 || config < 0 || write(config, s->config, s->config_length) != (ssize_t)s->config_length || mkdir("root", 0755) < 0 || mkdir("state", 0700) < 0)
		fail("stage", "cannot write the bundle", NULL);
	close(config);
	/* Without root the launcher is nobody in here: it must find this one file, and be able to read it. */
	int pid_file = open("pid", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (pid_file < 0)
		fail("stage", "cannot make the pid file", NULL);
	close(pid_file);
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
	/* The last word before the exec: the stage's directory goes along, so that the launcher can read the pid file. */
	if (!report_send(&ready, stage))
		fail("report", "cannot report", NULL);
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
