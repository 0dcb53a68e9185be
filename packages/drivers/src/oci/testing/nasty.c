/* Programs that a sandbox must survive, and calls that it must refuse. `nasty NAME [NUMBER]`; each says on stdout how far it got. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *name, long number, int error)
{
	printf("%s %ld %s\n", name, number, error ? strerrorname_np(error) : "0");
	fflush(stdout);
}

static void hold(void)
{
	for (;;)
		pause();
}

/* Children that nobody waits for, as long as there is room; then all of them are held. */
static void zombies(long wanted)
{
	long count = 0;
	for (; count < wanted; count++) {
		pid_t pid = fork();
		if (pid < 0)
			break;
		if (pid == 0)
			_exit(0);
	}
	say("zombies", count, count < wanted ? errno : 0);
	hold();
}

/* Grandchildren whose parent is gone before they are: only init can bury them. */
static void orphans(long wanted)
{
	for (long i = 0; i < wanted; i++) {
		pid_t pid = fork();
		if (pid < 0) {
			i--;
			usleep(1000);
			continue;
		}
		if (pid == 0) {
			fork();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	say("orphans", wanted, 0);
}

static void fill_pids(void)
{
	long count = 0;
	for (;; count++) {
		pid_t pid = fork();
		if (pid < 0)
			break;
		if (pid == 0)
			hold();
	}
	say("pids", count, errno);
	hold();
}

static void fork_bomb(void)
{
	for (;;)
		fork();
}

/* Out of the group, out of the session, and without the mark in the environment. */
static void escape(char **argv)
{
	if (fork())
		_exit(0);
	setsid();
	if (fork())
		_exit(0);
	char *args[] = {argv[0], "escaped", NULL}, *none[] = {NULL};
	for (int fd = 0; fd < 64; fd++)
		close(fd);
	execve(argv[0], args, none);
	_exit(1);
}

static void stubborn(void)
{
	for (int number = 1; number < 64; number++)
		signal(number, SIG_IGN);
	say("stubborn", 0, 0);
	hold();
}

static void close_everything(void)
{
	say("closing", 0, 0);
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	usleep(100000);
	_exit(7);
}

static void terminals(void)
{
	long count = 0;
	while (open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
		count++;
	say("terminals", count, errno);
	hold();
}

static void watchers(void)
{
	long count = 0;
	while (inotify_init1(IN_CLOEXEC) >= 0)
		count++;
	say("watchers", count, errno);
	hold();
}

static void descriptors(void)
{
	long count = 0;
	while (open("/dev/null", O_RDONLY) >= 0)
		count++;
	say("descriptors", count, errno);
	hold();
}

static void memory(void)
{
	for (;;) {
		volatile char *block = malloc(1 << 20);
		for (long at = 0; block && at < 1 << 20; at += 4096)
			block[at] = 1;
	}
}

/* Writes until it cannot. */
static void fill(const char *path)
{
	static char block[1 << 16];
	memset(block, 'x', sizeof block);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	long total = 0;
	if (fd < 0) {
		say("fill", -1, errno);
		return;
	}
	for (ssize_t n; (n = write(fd, block, sizeof block)) > 0;)
		total += n;
	int error = errno;
	if (fsync(fd) < 0)
		error = errno;
	say("fill", total, error);
}

static void inodes(const char *folder)
{
	char path[256];
	long count = 0;
	for (;; count++) {
		snprintf(path, sizeof path, "%s/inode-%ld", folder, count);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd < 0)
			break;
		close(fd);
	}
	say("inodes", count, errno);
}

#define TRY(name, call) (errno = 0, say(name, 0, (call) < 0 ? errno : 0))

static long look(const char *path, int flags)
{
	char byte;
	int fd = open(path, flags);
	if (fd < 0)
		return -1;
	long n = flags == O_WRONLY ? write(fd, "1", 1) : (flags & O_DIRECTORY) ? 0 : read(fd, &byte, 1);
	int error = errno;
	close(fd);
	errno = error;
	return n;
}

static void forbidden(void)
{
	char byte, target[256];
	struct iovec local = {&byte, 1}, remote = {(void *)0x400000, 1};
	TRY("ptrace-attach", ptrace(PTRACE_ATTACH, 1, NULL, NULL));
	TRY("ptrace-seize", ptrace(PTRACE_SEIZE, 1, NULL, NULL));
	TRY("process_vm_readv", process_vm_readv(1, &local, 1, &remote, 1, 0));
	TRY("kill-stop", kill(1, SIGSTOP));
	TRY("kill-kill", kill(1, SIGKILL));
	TRY("proc-environ", look("/proc/1/environ", O_RDONLY));
	TRY("proc-mem", look("/proc/1/mem", O_RDWR));
	TRY("proc-maps", look("/proc/1/maps", O_RDONLY));
	TRY("proc-fd", look("/proc/1/fd", O_RDONLY | O_DIRECTORY));
	TRY("proc-fd-link", readlink("/proc/1/fd/3", target, sizeof target));
	TRY("proc-exe", readlink("/proc/1/exe", target, sizeof target));
	TRY("proc-root", look("/proc/1/root", O_RDONLY | O_DIRECTORY));
	TRY("proc-cwd", look("/proc/1/cwd", O_RDONLY | O_DIRECTORY));
	TRY("proc-oom", look("/proc/1/oom_score_adj", O_WRONLY));
	TRY("sys-core_pattern", look("/proc/sys/kernel/core_pattern", O_WRONLY));
	TRY("sys-hostname", look("/proc/sys/kernel/hostname", O_WRONLY));
	TRY("sys-inotify", look("/proc/sys/user/max_inotify_instances", O_WRONLY));
	TRY("sysrq", look("/proc/sysrq-trigger", O_WRONLY));
	TRY("kcore", look("/proc/kcore", O_RDONLY));
	TRY("mknod-char", mknod("/workspace/node-c", S_IFCHR | 0666, makedev(1, 1)));
	TRY("mknod-block", mknod("/workspace/node-b", S_IFBLK | 0666, makedev(254, 0)));
	TRY("mount", mount("none", "/workspace", "tmpfs", 0, NULL));
	TRY("umount", umount2("/proc/sys", MNT_DETACH));
	TRY("unshare-user", unshare(CLONE_NEWUSER));
	TRY("unshare-mount", unshare(CLONE_NEWNS));
	TRY("unshare-net", unshare(CLONE_NEWNET));
	TRY("setns", setns(open("/proc/self/ns/net", O_RDONLY), CLONE_NEWNET));
	TRY("keyctl", syscall(SYS_keyctl, 0, -3, 1));
	TRY("add_key", syscall(SYS_add_key, "user", "x", "y", 1, -3));
	TRY("bpf", syscall(SYS_bpf, 0, NULL, 0));
	TRY("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
	TRY("io_uring_setup", syscall(SYS_io_uring_setup, 1, NULL));
	TRY("open_by_handle_at", syscall(SYS_open_by_handle_at, -1, NULL, 0));
	TRY("pivot_root", syscall(SYS_pivot_root, "/", "/"));
	TRY("chroot", chroot("/workspace"));
	TRY("sethostname", sethostname("x", 1));
	TRY("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL));
	TRY("setuid-root", setuid(0));
	TRY("vsock", syscall(SYS_socket, 40, 1, 0));
	TRY("alg", syscall(SYS_socket, 38, 5, 0));
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	long number = argc > 2 ? atol(argv[2]) : 0;
	if (!strcmp(name, "zombies")) zombies(number);
	else if (!strcmp(name, "orphans")) orphans(number);
	else if (!strcmp(name, "pids")) fill_pids();
	else if (!strcmp(name, "fork-bomb")) fork_bomb();
	else if (!strcmp(name, "escape")) escape(argv);
	else if (!strcmp(name, "escaped")) hold();
	else if (!strcmp(name, "stubborn")) stubborn();
	else if (!strcmp(name, "close")) close_everything();
	else if (!strcmp(name, "terminals")) terminals();
	else if (!strcmp(name, "watchers")) watchers();
	else if (!strcmp(name, "descriptors")) descriptors();
	else if (!strcmp(name, "memory")) memory();
	else if (!strcmp(name, "fill") && argc > 2) fill(argv[2]);
	else if (!strcmp(name, "inodes") && argc > 2) inodes(argv[2]);
	else if (!strcmp(name, "forbidden")) forbidden();
	else return 2;
	return 0;
}
