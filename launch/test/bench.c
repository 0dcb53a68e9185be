/* Measures starting and ending one sandbox, four ways, in turns: warren-launch, stock crun, bwrap, and bare system calls.
 * Usage: bench ROUNDS WORLD LAUNCH. The world is made by bench.ts. Prints "way start_us end_us" lines. */
#define _GNU_SOURCE
#include "../src/sys.h"

#include <grp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#define BASE 3000000
static const char *world;
static char name[32], dir[200], sock[240], root[240], upper[240], work[240], workspace[240];
static const char *controllers[] = {"memory", "pids", "cpu", "freezer"};
static int to_launch, from_launch;
static char filter[65536], *config_ours;
static size_t filter_size;

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static char *slurp(const char *file, size_t *size)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s", world, file);
	int fd = open(path, O_RDONLY);
	char *text = calloc(1, 1 << 20);
	ssize_t n = read(fd, text, (1 << 20) - 1);
	if (n < 0)
		die(path);
	close(fd);
	if (size)
		*size = (size_t)n;
	return text;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static void cgroup(char *out, size_t size, int i)
{
	snprintf(out, size, "/sys/fs/cgroup/%s/launch-bench/%s", controllers[i], name);
}

static void make_cgroups(void)
{
	char path[300], file[340];
	for (int i = 0; i < 4; i++) {
		cgroup(path, sizeof path, i);
		if (mkdir(path, 0755) < 0)
			die(path);
	}
	cgroup(path, sizeof path, 0);
	snprintf(file, sizeof file, "%s/memory.limit_in_bytes", path);
	put(file, "536870912");
	cgroup(path, sizeof path, 1);
	snprintf(file, sizeof file, "%s/pids.max", path);
	put(file, "256");
	cgroup(path, sizeof path, 2);
	snprintf(file, sizeof file, "%s/cpu.cfs_quota_us", path);
	put(file, "100000");
}

static void remove_cgroups(void)
{
	char path[300];
	for (int i = 0; i < 4; i++) {
		cgroup(path, sizeof path, i);
		for (int k = 0; rmdir(path) < 0 && errno == EBUSY && k < 1000; k++)
			usleep(200);
	}
}

static void join_cgroups(void)
{
	char path[300], file[340];
	for (int i = 0; i < 4; i++) {
		cgroup(path, sizeof path, i);
		snprintf(file, sizeof file, "%s/tasks", path);
		put(file, "0");
	}
}

static void make_dirs(void)
{
	snprintf(dir, sizeof dir, "%s/%s", world, name);
	snprintf(sock, sizeof sock, "%s/s", dir);
	snprintf(root, sizeof root, "%s/root", dir);
	snprintf(upper, sizeof upper, "%s/upper", dir);
	snprintf(work, sizeof work, "%s/work", dir);
	snprintf(workspace, sizeof workspace, "%s/workspace", world);
	mkdir(dir, 0755);
	mkdir(root, 0755);
	mkdir(upper, 0755);
	mkdir(work, 0755);
}

static void remove_dirs(void)
{
	char path[300];
	snprintf(path, sizeof path, "rm -rf %s", dir);
	if (system(path) != 0)
		die(path);
}

static int listener(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	snprintf(a.sun_path, sizeof a.sun_path, "%.100s", sock);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 64) < 0)
		die("listen");
	return fd;
}

static void ask(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	snprintf(a.sun_path, sizeof a.sun_path, "%.100s", sock);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char pong[8];
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0 || write(fd, "ping", 4) != 4)
		die("connect");
	struct pollfd p = {.fd = fd, .events = POLLIN};
	if (poll(&p, 1, 5000) != 1 || read(fd, pong, sizeof pong) != 4)
		die("no answer");
	close(fd);
}

static void mount_overlay(void)
{
	char options[800];
	snprintf(options, sizeof options, "lowerdir=%s/lower,upperdir=%s,workdir=%s", world, upper, work);
	if (mount("overlay", root, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		die("overlay");
}

static void streams(void)
{
	int in[2], out[2];
	if (pipe(in) < 0 || pipe(out) < 0)
		die("pipe");
	close(in[1]);
	dup2(in[0], 0);
	dup2(out[1], 1);
	close(in[0]);
	close(out[1]);
	fcntl(out[0], F_SETFD, 0);
}

/* ---- warren-launch ---- */

static void send_frame(const char *text)
{
	uint32_t n = (uint32_t)strlen(text);
	unsigned char head[4] = {(unsigned char)(n >> 24), (unsigned char)(n >> 16), (unsigned char)(n >> 8), (unsigned char)n};
	if (write(to_launch, head, 4) != 4 || write(to_launch, text, n) != (ssize_t)n)
		die("launch");
}

static void receive_frame(char *text, size_t size)
{
	unsigned char head[4];
	size_t got = 0;
	while (got < 4) {
		ssize_t n = read(from_launch, head + got, 4 - got);
		if (n <= 0)
			die("launch ended");
		got += (size_t)n;
	}
	size_t length = (size_t)head[2] << 8 | head[3];
	got = 0;
	while (got < length && length < size) {
		ssize_t n = read(from_launch, text + got, length - got);
		if (n <= 0)
			die("launch ended");
		got += (size_t)n;
	}
	text[length] = 0;
	if (!strstr(text, "\"ok\"") && !strstr(text, "\"event\"")) {
		fprintf(stderr, "%s\n", text);
		exit(1);
	}
}

static void cgroup_list(char *out, size_t size)
{
	char path[300];
	size_t used = 0;
	for (int i = 0; i < 4; i++) {
		cgroup(path, sizeof path, i);
		used += (size_t)snprintf(out + used, size - used, "%s\"%s\"", i ? "," : "", path);
	}
}

static void by_launch(uint64_t *begin, uint64_t *end, uint64_t *done)
{
	static char text[200000], list[2000], answer[4096];
	char libraries[300] = "";
	if (getenv("LIBRARIES"))
		snprintf(libraries, sizeof libraries, "\"libraries\":\"%s\",", getenv("LIBRARIES"));
	uint64_t t = now();
	make_dirs();
	make_cgroups();
	cgroup_list(list, sizeof list);
	snprintf(text, sizeof text,
		"{\"id\":1,\"op\":\"start\",\"lowers\":[\"%s/lower\"],\"upper\":\"%s\",\"work\":\"%s\",\"binds\":[{\"from\":\"%s/init\",\"to\":\"/run/warren/init\"},"
		"{\"from\":\"%s\",\"to\":\"/workspace\",\"readOnly\":false}],\"map\":{\"base\":%d,\"size\":65536},\"cgroups\":[%s],\"socket\":\"%s\",\"config\":%s,"
		"%s\"runtime\":[\"/usr/bin/crun\",\"--root\",\"/run/state\",\"--cgroup-manager=disabled\",\"run\",\"--detach\",\"--no-new-keyring\",\"--preserve-fds=1\",\"--bundle\",\"/run\",\"--pid-file\",\"/run/pid\",\"x\"]}",
		world, upper, work, world, workspace, BASE, list, sock, config_ours, libraries);
	send_frame(text);
	receive_frame(answer, sizeof answer); /* listening */
	ask();
	*begin = now() - t;
	receive_frame(answer, sizeof answer);
	*done = now() - t;
	if (getenv("STEPS"))
		fprintf(stderr, "%s\n", answer);
	char *pid = strstr(answer, "\"pid\":"), *ticks = strstr(answer, "\"startTicks\":\"");
	t = now();
	snprintf(text, sizeof text, "{\"id\":2,\"op\":\"kill\",\"pid\":%d,\"startTicks\":\"%llu\",\"cgroups\":[%s]}", atoi(pid + 6), strtoull(ticks + 14, NULL, 10), list);
	send_frame(text);
	receive_frame(answer, sizeof answer);
	*end = now() - t;
	remove_dirs();
}

/* ---- stock crun: overlay by us, everything else (cgroups, seccomp from JSON, user namespace) by crun ---- */

static void run(char *const *arguments, int fd3)
{
	pid_t p = fork();
	if (p == 0) {
		if (fd3 >= 0)
			dup2(fd3, 3);
		streams();
		execv(arguments[0], arguments);
		_exit(127);
	}
	int status;
	waitpid(p, &status, 0);
	if (status != 0) {
		fprintf(stderr, "%s failed: %x\n", arguments[0], status);
		exit(1);
	}
}

static void by_crun(uint64_t *begin, uint64_t *end, uint64_t *done)
{
	char path[300], to[300];
	uint64_t t = now();
	make_dirs();
	mount_overlay();
	snprintf(path, sizeof path, "%s/config-stock.json", world);
	snprintf(to, sizeof to, "%s/config.json", dir);
	char *text = slurp("config-stock.json", NULL), *config = NULL;
	/* The only differences from one sandbox to the next: where the root is, and the cgroup. */
	char *r = strstr(text, "@ROOT@"), *c = strstr(text, "@CGROUP@");
	if (!r || !c || r > c || asprintf(&config, "%.*s%s%.*s/launch-bench/%s%s", (int)(r - text), text, root, (int)(c - r - 6), r + 6, name, c + 8) < 0)
		die("config");
	int fd = open(to, O_WRONLY | O_CREAT, 0600);
	if (write(fd, config, strlen(config)) < 0)
		die(to);
	close(fd);
	free(text);
	free(config);
	int s = listener();
	char *start[] = {"/usr/bin/crun", "--root", "/run/launch-bench", "run", "--detach", "--preserve-fds=1", "--bundle", dir, name, NULL};
	run(start, s);
	close(s);
	ask();
	*begin = *done = now() - t;
	t = now();
	char *stop[] = {"/usr/bin/crun", "--root", "/run/launch-bench", "delete", "-f", name, NULL};
	run(stop, -1);
	umount2(root, MNT_DETACH);
	*end = now() - t;
	remove_cgroups();
	remove_dirs();
}

/* ---- bwrap ---- */

static void by_bwrap(uint64_t *begin, uint64_t *end, uint64_t *done)
{
	char init[300], bpf[300];
	snprintf(init, sizeof init, "%s/init", world);
	snprintf(bpf, sizeof bpf, "%s/seccomp.bpf", world);
	uint64_t t = now();
	make_dirs();
	make_cgroups();
	mount_overlay();
	int s = listener();
	pid_t p = fork();
	if (p == 0) {
		join_cgroups();
		dup2(s, 3);
		int f = open(bpf, O_RDONLY);
		dup2(f, 4);
		streams();
		execl("/usr/bin/bwrap", "bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup", "--uid", "65533", "--gid", "65533",
			"--as-pid-1", "--hostname", "warren", "--cap-drop", "ALL", "--bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", workspace, "/workspace",
			"--ro-bind", init, "/run/warren/init", "--ro-bind", "/dev/null", "/proc/keys", "--ro-bind", "/dev/null", "/proc/kallsyms", "--ro-bind", "/dev/null", "/proc/timer_list",
			"--ro-bind", "/dev/null", "/proc/config.gz", "--ro-bind", "/dev/null", "/proc/kmsg", "--ro-bind", "/dev/null", "/proc/pagetypeinfo", "--ro-bind", "/dev/null", "/proc/slabinfo",
			"--ro-bind", "/dev/null", "/proc/interrupts", "--ro-bind", "/proc/bus", "/proc/bus", "--ro-bind", "/proc/fs", "/proc/fs", "--ro-bind", "/proc/irq", "/proc/irq",
			"--ro-bind", "/proc/sys", "/proc/sys", "--seccomp", "4", "--chdir", "/", "/run/warren/init", NULL);
		_exit(127);
	}
	close(s);
	ask();
	*begin = *done = now() - t;
	t = now();
	kill(p, SIGKILL);
	int status;
	waitpid(p, &status, 0);
	/* its PID 1 outlives the monitor: what is in the cgroup goes too */
	char path[300], file[340];
	cgroup(path, sizeof path, 1);
	snprintf(file, sizeof file, "%s/cgroup.procs", path);
	FILE *list = fopen(file, "r");
	int member;
	while (list && fscanf(list, "%d", &member) == 1)
		kill(member, SIGKILL);
	if (list)
		fclose(list);
	remove_cgroups();
	umount2(root, MNT_DETACH);
	*end = now() - t;
	remove_dirs();
}

/* ---- bare: the same namespaces and the same mounts, nothing else ---- */

static void bind_file(const char *from, const char *to, bool ro)
{
	int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0)
		close(fd);
	if (mount(from, to, NULL, MS_BIND, NULL) < 0)
		die(to);
	if (ro && mount(NULL, to, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0)
		die(to);
}

struct cloned { int ready[2], told[2], listener; };

static int bare_child(void *context)
{
	struct cloned *c = context;
	char byte;
	dup2(c->listener, 3);
	fcntl(3, F_SETFD, 0);
	close(c->ready[1]);
	if (read(c->ready[0], &byte, 1) != 1 || setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		die("enter");
	streams();
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount(root, root, NULL, MS_BIND | MS_REC, NULL) < 0 || chdir(root) < 0)
		die("root");
	char init[300];
	snprintf(init, sizeof init, "%s/init", world);
	if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 || mount("dev", "dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k,nr_inodes=256") < 0)
		die("proc, dev");
	mkdir("dev/pts", 0755);
	mkdir("dev/shm", 0755);
	if (mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5,max=64") < 0 || mount("shm", "dev/shm", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777,size=64m") < 0 || mount("tmp", "tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=64m") < 0)
		die("pts, shm, tmp");
	static const char *devices[] = {"null", "zero", "full", "tty", "random", "urandom"}, *masked[] = {"keys", "timer_list", "config.gz", "kallsyms", "kmsg", "pagetypeinfo", "slabinfo", "interrupts"}, *fixed[] = {"bus", "fs", "irq", "sys"};
	char a[64], b[64];
	for (int i = 0; i < 6; i++) {
		snprintf(a, sizeof a, "/dev/%s", devices[i]);
		bind_file(a, a + 1, false);
	}
	for (int i = 0; i < 8; i++) {
		snprintf(b, sizeof b, "proc/%s", masked[i]);
		bind_file("/dev/null", b, true);
	}
	for (int i = 0; i < 4; i++) {
		snprintf(b, sizeof b, "proc/%s", fixed[i]);
		if (mount(b, b, NULL, MS_BIND, NULL) < 0 || mount(NULL, b, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0)
			die(b);
	}
	bind_file(init, "run/warren/init", true);
	if (mount(workspace, "workspace", NULL, MS_BIND, NULL) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		die("pivot");
	int net = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	ioctl(net, SIOCSIFFLAGS, &lo);
	sethostname("warren", 6);
	struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
	for (int i = 0; i <= 40; i++)
		prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (setresgid(65533, 65533, 65533) < 0 || setresuid(65533, 65533, 65533) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		die("drop");
	struct { unsigned short length; void *code; } program = {(unsigned short)(filter_size / 8), filter};
	if (syscall(SYS_seccomp, 1, 0, &program) < 0)
		die("seccomp");
	syscall(SYS_close_range, 4u, ~0u, 0u);
	char *arguments[] = {"/run/warren/init", NULL}, *environment[] = {NULL};
	execve(arguments[0], arguments, environment);
	_exit(127);
}

static void by_hand(uint64_t *begin, uint64_t *end, uint64_t *done)
{
	static char stack[65536] __attribute__((aligned(16)));
	char path[64], map[64];
	uint64_t t = now();
	make_dirs();
	make_cgroups();
	mount_overlay();
	struct cloned c = {.listener = listener()};
	if (pipe2(c.ready, O_CLOEXEC) < 0 || pipe2(c.told, O_CLOEXEC) < 0)
		die("pipe");
	/* A child in between joins the cgroups by itself (cheap), and clones a sibling. */
	static volatile pid_t p;
	pid_t between = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
	if (between == 0) {
		join_cgroups();
		pid_t q = clone(bare_child, stack + sizeof stack, CLONE_PARENT | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | SIGCHLD, &c);
		if (write(c.told[1], &q, sizeof q) != sizeof q)
			die("told");
		_exit(0);
	}
	if (read(c.told[0], (void *)&p, sizeof p) != sizeof p || p < 0)
		die("clone");
	waitpid(between, NULL, 0);
	close(c.told[0]);
	close(c.told[1]);
	snprintf(map, sizeof map, "0 %d 65536\n", BASE);
	snprintf(path, sizeof path, "/proc/%d/uid_map", (int)p);
	put(path, map);
	snprintf(path, sizeof path, "/proc/%d/gid_map", (int)p);
	put(path, map);
	if (write(c.ready[1], "x", 1) != 1)
		die("pipe");
	close(c.ready[0]);
	close(c.ready[1]);
	close(c.listener);
	ask();
	*begin = *done = now() - t;
	t = now();
	kill(p, SIGKILL);
	int status;
	waitpid(p, &status, 0);
	remove_cgroups();
	umount2(root, MNT_DETACH);
	*end = now() - t;
	remove_dirs();
}

int main(int count, char **arguments)
{
	if (count < 4)
		return 2;
	int rounds = atoi(arguments[1]);
	world = arguments[2];
	int in[2], out[2];
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || umount2("/sys/fs/cgroup/unified", MNT_DETACH) < 0)
		die("mount namespace");
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		die("pipe");
	if (fork() == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(arguments[3], "warren-launch", "--root", world, NULL);
		_exit(127);
	}
	to_launch = in[1];
	from_launch = out[0];
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < 4; i++) {
		char path[100];
		snprintf(path, sizeof path, "/sys/fs/cgroup/%s/launch-bench", controllers[i]);
		mkdir(path, 0755);
	}
	char *text = slurp("seccomp.bpf", &filter_size);
	memcpy(filter, text, filter_size);
	config_ours = slurp("config-ours.txt", NULL);
	static const struct { const char *name; void (*run)(uint64_t *, uint64_t *, uint64_t *); } ways[] = {{"launch", by_launch}, {"crun", by_crun}, {"bwrap", by_bwrap}, {"bare", by_hand}};
	for (int i = 0; i < rounds; i++)
		for (size_t w = 0; w < 4; w++) {
			if (count > 4 && !strstr(arguments[4], ways[w].name))
				continue;
			uint64_t begin = 0, end = 0, done = 0;
			snprintf(name, sizeof name, "b%d-%s", i, ways[w].name);
			ways[w].run(&begin, &end, &done);
			printf("%s %llu %llu %llu\n", ways[w].name, (unsigned long long)begin, (unsigned long long)end, (unsigned long long)done);
			fflush(stdout);
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
		}
	/* stock crun makes its cgroup in every hierarchy there is */
	static const char *all[] = {"memory", "pids", "cpu", "freezer", "cpuacct", "cpuset", "devices", "blkio", "systemd"};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		char path[100];
		snprintf(path, sizeof path, "/sys/fs/cgroup/%s/launch-bench", all[i]);
		rmdir(path);
	}
	rmdir("/run/launch-bench");
	return 0;
}
