/* warren-launch: starts and ends sandboxes for one runner. Frames on stdin and stdout, one forked child per start, no
 * threads, nothing waited for but in epoll. The wire is described in ../NOTES.md. */
#define _GNU_SOURCE
#include "json.h"
#include "remove.h"
#include "start.h"
#include "sys.h"

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#define VERSION 1
#define FRAME_MAX (1u << 20)
#define JOBS_MAX 512 /* when all are taken, no more requests are read until one is done */
#define CHILDREN_MAX 256
#define WATCHES_MAX 8192
#define ROOTS_MAX 8
#define TAIL_MAX 4096
#define OUTPUT_PAUSE (1u << 20) /* unsent answers beyond which no more requests are read */
#define START_FD 16             /* the launcher keeps its own descriptors above those a runtime gets */

enum kind { FREE, START, REMOVE, KILL };
enum source { FROM_STDIN, FROM_STDOUT, FROM_SIGNALS, FROM_REPORT, FROM_OUTPUT, FROM_VICTIM, FROM_WATCH };

struct job {
	enum kind kind;
	uint32_t generation;
	int64_t id;
	uint64_t deadline, retry; /* ms; 0 is never */
	unsigned tries;
	/* start, remove */
	pid_t child;              /* 0 once reaped */
	int status;
	int report_fd, output_fd, stage_fd;
	struct report report;
	bool reported, doomed;    /* doomed: a fault is coming, what was started is being killed */
	char *tail;
	size_t tail_used;
	/* kill */
	int victim_fd;
	int killed;
	/* kill, start */
	char *cgroups[CGROUPS_MAX];
	int cgroup_count;
};

struct watch {
	pid_t pid;
	int fd; /* −1: free */
	uint32_t generation;
	char ticks[24];
	bool reaped;
	int status;
};

static struct job jobs[JOBS_MAX];
static int job_count; /* slots ever used: what the loops look at */
static int jobs_taken, children_taken;
static struct watch *watches;
static int watch_count; /* slots in use so far */
static const char *roots[ROOTS_MAX];
static int root_count;
static int epoll_fd, signal_fd;
static char *input;
static size_t input_used;
static char *output;
static size_t output_used, output_size;
static bool closing, paused;
static struct json_doc doc;
static pid_t self;

/* ---- small things ---- */

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static _Noreturn void die(const char *what)
{
	dprintf(2, "warren-launch: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static const char *errno_name(int error)
{
	static const struct { int error; const char *name; } names[] = {
		{EPERM, "EPERM"}, {ENOENT, "ENOENT"}, {ESRCH, "ESRCH"}, {EINTR, "EINTR"}, {EIO, "EIO"}, {ENXIO, "ENXIO"}, {E2BIG, "E2BIG"},
		{ENOEXEC, "ENOEXEC"}, {EBADF, "EBADF"}, {ECHILD, "ECHILD"}, {EAGAIN, "EAGAIN"}, {ENOMEM, "ENOMEM"}, {EACCES, "EACCES"},
		{EBUSY, "EBUSY"}, {EEXIST, "EEXIST"}, {EXDEV, "EXDEV"}, {ENODEV, "ENODEV"}, {ENOTDIR, "ENOTDIR"}, {EISDIR, "EISDIR"},
		{EINVAL, "EINVAL"}, {ENFILE, "ENFILE"}, {EMFILE, "EMFILE"}, {EFBIG, "EFBIG"}, {ENOSPC, "ENOSPC"}, {EROFS, "EROFS"},
		{EMLINK, "EMLINK"}, {ENAMETOOLONG, "ENAMETOOLONG"}, {ENOSYS, "ENOSYS"}, {ENOTEMPTY, "ENOTEMPTY"}, {ELOOP, "ELOOP"},
		{EOVERFLOW, "EOVERFLOW"}, {EUSERS, "EUSERS"}, {ENOTSUP, "ENOTSUP"}, {EADDRINUSE, "EADDRINUSE"}, {ETIMEDOUT, "ETIMEDOUT"},
		{ECANCELED, "ECANCELED"}, {EDQUOT, "EDQUOT"}, {ESTALE, "ESTALE"}, {EALREADY, "EALREADY"}, {EPROTO, "EPROTO"},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].error == error)
			return names[i].name;
	return NULL;
}

static void watch_fd(int fd, uint32_t events, enum source source, uint32_t index, uint32_t generation)
{
	struct epoll_event e = {.events = events, .data.u64 = (uint64_t)source << 56 | (uint64_t)(generation & 0xffffff) << 32 | index};
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 && errno == EEXIST)
		epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &e);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Closing alone is not enough: a forked child's copy would keep the registration alive. */
static void unwatch_fd(int *fd)
{
	if (*fd >= 0)
		epoll_ctl(epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
	close_fd(fd);
}

/* ---- answers ---- */

static void flush_output(void)
{
	while (output_used) {
		ssize_t n = write(1, output, output_used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) { /* the runner is gone: nobody to answer */
			output_used = 0;
			closing = true;
			break;
		}
		memmove(output, output + n, output_used - (size_t)n);
		output_used -= (size_t)n;
	}
	struct epoll_event e = {.events = output_used ? EPOLLOUT : 0, .data.u64 = (uint64_t)FROM_STDOUT << 56};
	epoll_ctl(epoll_fd, EPOLL_CTL_MOD, 1, &e);
	bool pause = output_used > OUTPUT_PAUSE || jobs_taken == JOBS_MAX;
	if (pause != paused && !closing) {
		struct epoll_event in = {.events = pause ? 0 : EPOLLIN, .data.u64 = (uint64_t)FROM_STDIN << 56};
		epoll_ctl(epoll_fd, EPOLL_CTL_MOD, 0, &in);
	}
	paused = pause;
}

static void append(const char *text, size_t length)
{
	if (output_used + length > output_size) {
		size_t size = output_size ? output_size : 8192;
		while (size < output_used + length)
			size *= 2;
		char *more = realloc(output, size);
		if (!more)
			die("memory");
		output = more;
		output_size = size;
	}
	memcpy(output + output_used, text, length);
	output_used += length;
}

static void put(const char *format, ...)
{
	char line[256];
	va_list list;
	va_start(list, format);
	int n = vsnprintf(line, sizeof line, format, list);
	va_end(list);
	append(line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

/* Bytes of any kind as a JSON string: what is not printable ASCII or valid UTF-8 becomes '?'. */
static void put_string(const char *text, size_t length)
{
	append("\"", 1);
	for (size_t i = 0; i < length;) {
		unsigned char c = (unsigned char)text[i];
		if (c == '"' || c == '\\') {
			char pair[2] = {'\\', (char)c};
			append(pair, 2);
			i++;
		} else if (c == '\n' || c == '\t') {
			append(c == '\n' ? "\\n" : "\\t", 2);
			i++;
		} else if (c < 0x20 || c == 0x7f) {
			append("?", 1);
			i++;
		} else {
			size_t n = c < 0x80 ? 1 : (size_t)json_utf8(text + i, text + length);
			append(n ? text + i : "?", n ? n : 1);
			i += n ? n : 1;
		}
	}
	append("\"", 1);
}

static size_t frame_begin(void)
{
	size_t at = output_used;
	append("\0\0\0\0", 4);
	return at;
}

static void frame_end(size_t at)
{
	uint32_t n = (uint32_t)(output_used - at - 4);
	unsigned char length[4] = {(unsigned char)(n >> 24), (unsigned char)(n >> 16), (unsigned char)(n >> 8), (unsigned char)n};
	memcpy(output + at, length, 4);
}

static void put_id(int64_t id)
{
	if (id > 0)
		put("{\"id\":%lld,", (long long)id);
	else
		put("{\"id\":null,");
}

static void answer_fault(int64_t id, const char *step, int error, const char *message, const char *tail, size_t tail_length)
{
	size_t at = frame_begin();
	put_id(id);
	put("\"fault\":{\"step\":\"%s\",\"errno\":", step);
	const char *name = errno_name(error);
	if (name)
		put("\"%s\"", name);
	else if (error)
		put("\"%d\"", error);
	else
		put("null");
	put(",\"message\":");
	put_string(message, strlen(message));
	if (tail_length) {
		put(",\"stderr\":");
		put_string(tail, tail_length);
	}
	put("}}");
	frame_end(at);
}

static void answer_ok(int64_t id)
{
	size_t at = frame_begin();
	put_id(id);
	put("\"ok\":{}}");
	frame_end(at);
}

/* ---- processes ---- */

/* Fields 22 (start time) and 4 (parent) of /proc/PID/stat. A zombie counts as gone. */
static bool process_stat(pid_t pid, char ticks[24], pid_t *parent)
{
	char path[32], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	char *p = strrchr(text, ')'); /* the name may hold anything */
	if (!p)
		return false;
	char state;
	unsigned long long start;
	if (sscanf(p + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state, parent, &start) != 3)
		return false;
	if (state == 'Z' || state == 'X')
		return false;
	snprintf(ticks, 24, "%llu", start);
	return true;
}

/* A descriptor of exactly that process, or −1 when it is gone (or the pid is somebody else's by now). */
static int open_process(pid_t pid, const char *ticks)
{
	int fd = w_pidfd_open(pid);
	if (fd < 0)
		return -1;
	char found[24];
	pid_t parent;
	/* Checked after the pidfd was opened: it cannot have been recycled since. */
	if (!process_stat(pid, found, &parent) || strcmp(found, ticks) != 0) {
		close(fd);
		errno = ESRCH;
		return -1;
	}
	return fd;
}

static bool in_namespace(pid_t pid, uint64_t userns)
{
	char path[40], wanted[40], link[40];
	snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
	snprintf(wanted, sizeof wanted, "user:[%llu]", (unsigned long long)userns);
	ssize_t n = readlink(path, link, sizeof link);
	return n > 0 && (size_t)n == strlen(wanted) && memcmp(link, wanted, (size_t)n) == 0;
}

/* Kills every process in that user namespace, wherever it is. Returns how many were seen. */
static int kill_namespace(uint64_t userns)
{
	int seen = 0;
	DIR *dir = opendir("/proc");
	if (!dir)
		return 0;
	for (struct dirent *e; (e = readdir(dir));) {
		int pid = e->d_name[0] >= '0' && e->d_name[0] <= '9' ? atoi(e->d_name) : 0;
		if (pid <= 1 || pid == self || !in_namespace(pid, userns))
			continue;
		int fd = w_pidfd_open(pid);
		if (fd >= 0 && in_namespace(pid, userns)) { /* still the same after the pidfd pinned it */
			w_pidfd_kill(fd, SIGKILL);
			seen++;
		}
		close_fd(&fd);
	}
	closedir(dir);
	return seen;
}

static int cgroup_members(const char *cgroup, pid_t *pids, int max)
{
	int dir = w_openat2(AT_FDCWD, cgroup, O_RDONLY | O_DIRECTORY, 0, W_RESOLVE_NO_SYMLINKS | W_RESOLVE_NO_MAGICLINKS);
	struct statfs fs;
	if (dir < 0)
		return 0;
	int fd = fstatfs(dir, &fs) == 0 && (fs.f_type == W_CGROUP_MAGIC || fs.f_type == W_CGROUP2_MAGIC) ? openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC) : -1;
	close(dir);
	if (fd < 0)
		return 0;
	FILE *file = fdopen(fd, "r");
	int n = 0, pid;
	while (file && n < max && fscanf(file, "%d", &pid) == 1)
		if (pid > 1 && pid != self)
			pids[n++] = pid;
	if (file)
		fclose(file);
	return n;
}

/* Kills what is in a cgroup: a pid counts only if it is still listed after its pidfd was opened. */
static int kill_cgroup(const char *cgroup)
{
	pid_t first[256], second[512];
	int fds[256], killed = 0;
	int n = cgroup_members(cgroup, first, 256);
	for (int i = 0; i < n; i++)
		fds[i] = w_pidfd_open(first[i]);
	int m = n ? cgroup_members(cgroup, second, 512) : 0;
	for (int i = 0; i < n; i++) {
		for (int k = 0; fds[i] >= 0 && k < m; k++)
			if (second[k] == first[i] && w_pidfd_kill(fds[i], SIGKILL) == 0) {
				killed++;
				break;
			}
		close_fd(&fds[i]);
	}
	return killed;
}

/* ---- jobs ---- */

static struct job *new_job(enum kind kind, int64_t id, int64_t timeout)
{
	bool child = kind != KILL;
	if (child && children_taken == CHILDREN_MAX)
		return NULL; /* hanging starts must not keep kills out */
	for (int i = 0; i < JOBS_MAX; i++) {
		struct job *j = &jobs[i];
		if (j->kind != FREE)
			continue;
		if (i >= job_count)
			job_count = i + 1;
		jobs_taken++;
		children_taken += child;
		uint32_t generation = j->generation + 1;
		*j = (struct job){.kind = kind, .generation = generation, .id = id, .deadline = now_ms() + (uint64_t)timeout, .report_fd = -1, .output_fd = -1, .stage_fd = -1, .victim_fd = -1};
		return j;
	}
	return NULL;
}

static void free_job(struct job *j)
{
	unwatch_fd(&j->report_fd);
	unwatch_fd(&j->output_fd);
	unwatch_fd(&j->victim_fd);
	close_fd(&j->stage_fd);
	free(j->tail);
	j->tail = NULL;
	for (int i = 0; i < j->cgroup_count; i++)
		free(j->cgroups[i]);
	j->cgroup_count = 0;
	jobs_taken--;
	children_taken -= j->kind != KILL;
	j->kind = FREE;
}

static bool id_in_use(int64_t id)
{
	for (int i = 0; i < job_count; i++)
		if (jobs[i].kind != FREE && jobs[i].id == id)
			return true;
	return false;
}

static void read_output(struct job *j)
{
	char chunk[4096];
	for (int rounds = 0; j->output_fd >= 0 && rounds < 16; rounds++) {
		ssize_t n = read(j->output_fd, chunk, sizeof chunk);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		if (n == 0) {
			unwatch_fd(&j->output_fd);
			return;
		}
		if (!j->tail && !(j->tail = malloc(TAIL_MAX)))
			return;
		size_t size = (size_t)n, keep = TAIL_MAX - size < j->tail_used ? TAIL_MAX - size : j->tail_used;
		memmove(j->tail, j->tail + j->tail_used - keep, keep);
		memcpy(j->tail + keep, chunk, size);
		j->tail_used = keep + size;
	}
}

static void read_report(struct job *j)
{
	for (;;) {
		struct report r;
		union { char space[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control;
		struct iovec io = {.iov_base = &r, .iov_len = sizeof r};
		struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
		ssize_t n = recvmsg(j->report_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		if (n == 0) {
			unwatch_fd(&j->report_fd);
			return;
		}
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);
		if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			close_fd(&j->stage_fd);
			memcpy(&j->stage_fd, CMSG_DATA(c), sizeof(int));
		}
		if (n != (ssize_t)sizeof r)
			continue;
		if (!r.failed && !j->reported && !j->doomed) {
			/* Who connects now is answered the moment init runs, while the runtime is still tidying up. */
			size_t at = frame_begin();
			put("{\"event\":\"listening\",\"id\":%lld}", (long long)j->id);
			frame_end(at);
		}
		if (j->reported && j->report.userns)
			r.userns = j->report.userns;
		j->report = r;
		j->reported = true;
	}
}

static void set_fault(struct job *j, const char *step, int error, const char *message)
{
	if (j->doomed)
		return;
	j->doomed = true;
	if (j->reported && j->report.failed)
		return; /* the child's own words are better */
	j->report.failed = true;
	j->report.error = error;
	snprintf(j->report.step, sizeof j->report.step, "%s", step);
	snprintf(j->report.message, sizeof j->report.message, "%s", message);
}

/* The init that the runtime started: its pid file says which, and it must live in the user namespace we made. */
static pid_t find_init(struct job *j, char ticks[24], pid_t *parent)
{
	char text[16] = {0};
	int fd = j->stage_fd < 0 ? -1 : w_openat2(j->stage_fd, "pid", O_RDONLY | O_NOFOLLOW, 0, W_RESOLVE_BENEATH | W_RESOLVE_NO_SYMLINKS);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	close_fd(&fd);
	char *end;
	long pid = n > 0 ? strtol(text, &end, 10) : 0;
	if (pid <= 1 || pid > INT_MAX || (*end && *end != '\n'))
		return 0;
	return process_stat((pid_t)pid, ticks, parent) && in_namespace((pid_t)pid, j->report.userns) ? (pid_t)pid : 0;
}

/* What a failed start left behind is dead before the fault is sent. Returns true when nothing is left. */
static bool swept(struct job *j)
{
	int left = 0;
	if (j->report.userns)
		left += kill_namespace(j->report.userns);
	for (int i = 0; i < j->cgroup_count; i++)
		left += kill_cgroup(j->cgroups[i]);
	return left == 0;
}

static void answer_start(struct job *j, pid_t pid, const char *ticks)
{
	size_t at = frame_begin();
	put_id(j->id);
	put("\"ok\":{\"pid\":%d,\"startTicks\":\"%s\",\"idmap\":{\"lower\":%s,\"upper\":%s},\"stepUs\":[", (int)pid, ticks, j->report.idmap_lower ? "true" : "false", j->report.idmap_upper ? "true" : "false");
	for (int i = 0; i < 6; i++)
		put(i ? ",%u" : "%u", j->report.step_us[i]);
	put("]}}");
	frame_end(at);
}

/* Called whenever something about a start or a removal changed. */
static void advance_child(struct job *j)
{
	if (j->child > 0)
		return;
	if (j->report_fd >= 0)
		read_report(j);
	if (j->output_fd >= 0)
		read_output(j);
	if (j->kind == REMOVE) {
		if (j->doomed || j->status != 0 || (j->reported && j->report.failed)) {
			set_fault(j, "remove", EIO, "the removal ended early");
			answer_fault(j->id, j->report.step, j->report.error, j->report.message, NULL, 0);
		} else {
			answer_ok(j->id);
		}
		free_job(j);
		return;
	}
	char ticks[24] = "";
	pid_t pid = 0, parent = 0;
	if (!j->doomed) {
		if (j->reported && j->report.failed)
			j->doomed = true;
		else if (j->status != 0) {
			char message[64];
			snprintf(message, sizeof message, "the runtime ended with %s %d", WIFSIGNALED(j->status) ? "signal" : "code", WIFSIGNALED(j->status) ? WTERMSIG(j->status) : WEXITSTATUS(j->status));
			set_fault(j, "runtime", 0, message);
		} else if (!(pid = find_init(j, ticks, &parent)))
			set_fault(j, "runtime", ECHILD, "the runtime ended well but its init is not there");
	}
	if (!j->doomed && parent != self) {
		/* crun's last process is still between us and init; its end (a SIGCHLD: it was orphaned to us) makes init our child. */
		j->retry = now_ms() + 5;
		return;
	}
	if (!j->doomed) {
		answer_start(j, pid, ticks);
		free_job(j);
		return;
	}
	if (!swept(j) && ++j->tries < 200) {
		j->retry = now_ms() + (j->tries < 10 ? 1 : 20);
		return;
	}
	answer_fault(j->id, j->report.step, j->report.error, j->report.message, j->tail, j->tail_used);
	free_job(j);
}

static void doom(struct job *j, int error, const char *message)
{
	if (j->doomed)
		return;
	set_fault(j, j->kind == REMOVE ? "remove" : "runtime", error, message);
	if (j->child > 0)
		kill(j->child, SIGKILL); /* not reaped yet, so the pid is still ours */
	else
		advance_child(j);
}

static void advance_kill(struct job *j)
{
	uint64_t now = now_ms();
	if (j->victim_fd >= 0) {
		if (now < j->deadline)
			return;
		answer_fault(j->id, "kill", ETIMEDOUT, "the process does not die", NULL, 0);
		free_job(j);
		return;
	}
	int left = 0, error = 0;
	bool counted = j->tries > 0; /* the same processes are in every hierarchy, and a dying one may be seen again */
	for (int i = 0; i < j->cgroup_count; i++) {
		if (!j->cgroups[i])
			continue;
		if (rmdir(j->cgroups[i]) < 0 && errno != ENOENT) {
			error = errno;
			if (errno == EBUSY) {
				int found = kill_cgroup(j->cgroups[i]);
				if (!counted)
					j->killed += found;
				counted = true;
				left++;
				continue;
			}
			answer_fault(j->id, "cgroup", error, j->cgroups[i], NULL, 0);
			free_job(j);
			return;
		}
		free(j->cgroups[i]);
		j->cgroups[i] = NULL;
	}
	if (left && now < j->deadline) {
		unsigned wait = 1u << (j->tries < 5 ? j->tries : 5); /* v1 has no event for "empty" */
		j->tries++;
		j->retry = now + wait;
		return;
	}
	if (left) {
		answer_fault(j->id, "cgroup", error, "a cgroup stays busy", NULL, 0);
	} else {
		size_t at = frame_begin();
		put_id(j->id);
		put("\"ok\":{\"killed\":%d}}", j->killed);
		frame_end(at);
	}
	free_job(j);
}

static void advance(struct job *j)
{
	if (j->kind == KILL)
		advance_kill(j);
	else if (j->kind != FREE)
		advance_child(j);
}

static void reap(void)
{
	bool any = false;
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);
		if (pid <= 0)
			break;
		any = true;
		for (int i = 0; i < watch_count; i++)
			if (watches[i].fd >= 0 && watches[i].pid == pid) {
				watches[i].reaped = true;
				watches[i].status = status;
			}
		for (int i = 0; i < job_count; i++)
			if ((jobs[i].kind == START || jobs[i].kind == REMOVE) && jobs[i].child == pid) {
				jobs[i].child = 0;
				jobs[i].status = status;
				advance(&jobs[i]);
				break;
			}
	}
	for (int i = 0; any && i < job_count; i++) /* those that wait for init to become our child */
		if (jobs[i].kind == START && jobs[i].child == 0 && !jobs[i].doomed && jobs[i].retry)
			advance(&jobs[i]);
}

/* ---- requests ---- */

struct request {
	const struct json *at;
	int64_t id;
	bool bad;
	char why[120];
};

static void bad(struct request *r, const char *name, const char *why)
{
	if (!r->bad)
		snprintf(r->why, sizeof r->why, "%.30s %.80s", name, why);
	r->bad = true;
}

/* Absolute, normal (no empty, "." or ".." part), bounded. */
static bool good_path(const struct json *v)
{
	if (!v || v->type != JSON_STRING || v->length < 2 || v->length > 4000 || v->text[0] != '/')
		return false;
	for (const char *p = v->text; *p;) {
		size_t n = strcspn(++p, "/");
		if (n == 0 || n > 255 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += n;
	}
	return true;
}

static bool below(const char *path, const char *root)
{
	size_t n = strlen(root);
	return strncmp(path, root, n) == 0 && path[n] == '/';
}

/* The longest of our roots that the path is strictly below, or NULL. */
static const char *root_of(const char *path)
{
	const char *best = NULL;
	for (int i = 0; i < root_count; i++)
		if (below(path, roots[i]) && (!best || strlen(roots[i]) > strlen(best)))
			best = roots[i];
	return best;
}

static const char *want_path(struct request *r, const char *name, bool optional, bool ours)
{
	const struct json *v = json_get(&doc, r->at, name);
	if (optional && (!v || v->type == JSON_NULL))
		return NULL;
	if (!good_path(v))
		return bad(r, name, "must be an absolute path without . and .."), NULL;
	if (ours && !root_of(v->text))
		return bad(r, name, "is not below a --root"), NULL;
	return v->text;
}

static int64_t want_number(struct request *r, const char *name, int64_t low, int64_t high, int64_t missing)
{
	const struct json *v = json_get(&doc, r->at, name);
	if (!v && missing >= low)
		return missing;
	if (!v || v->type != JSON_NUMBER || v->number < low || v->number > high)
		return bad(r, name, "is missing or out of range"), low;
	return v->number;
}

static const char *want_ticks(struct request *r)
{
	const struct json *v = json_get(&doc, r->at, "startTicks");
	if (!v || v->type != JSON_STRING || v->length < 1 || v->length > 20 || strspn(v->text, "0123456789") != v->length)
		return bad(r, "startTicks", "must be digits"), "";
	return v->text;
}

static bool want_flag(struct request *r, const struct json *object, const char *name, bool missing)
{
	const struct json *v = json_get(&doc, object, name);
	if (v && v->type != JSON_TRUE && v->type != JSON_FALSE)
		bad(r, name, "must be true or false");
	return v ? v->type == JSON_TRUE : missing;
}

static const struct json *want_list(struct request *r, const char *name, int low, int high)
{
	const struct json *v = json_get(&doc, r->at, name);
	if (!v && low == 0)
		return NULL;
	if (!v || v->type != JSON_ARRAY || v->count < low || v->count > high)
		return bad(r, name, "must be a list of allowed length"), NULL;
	return json_child(&doc, v);
}

/* At least two names below the hierarchy: a runner's own cgroup, never a whole hierarchy. */
static int want_cgroups(struct request *r, const char *list[CGROUPS_MAX])
{
	int n = 0;
	for (const struct json *v = want_list(r, "cgroups", 0, CGROUPS_MAX); v && !r->bad; v = json_next(&doc, v)) {
		int parts = 0;
		if (!good_path(v) || !below(v->text, "/sys/fs/cgroup")) {
			bad(r, "cgroups", "must be paths below /sys/fs/cgroup");
			break;
		}
		for (const char *p = v->text + strlen("/sys/fs/cgroup"); *p; p++)
			parts += *p == '/';
		if (parts < 2)
			bad(r, "cgroups", "must be at least two levels below /sys/fs/cgroup");
		list[n++] = v->text;
	}
	return n;
}

static bool keep_cgroups(struct job *j, const char *const *list, int count)
{
	for (int i = 0; i < count; i++) {
		if (!(j->cgroups[i] = strdup(list[i])))
			return false;
		j->cgroup_count++;
	}
	return true;
}

static bool plain_name(const char *path)
{
	return !strpbrk(strrchr(path, '/'), ":,\\\"' \t\n");
}

static void parse_overlay(struct request *r, struct overlay *o)
{
	for (const struct json *v = want_list(r, "lowers", 1, LOWERS_MAX); v && !r->bad; v = json_next(&doc, v)) {
		if (!good_path(v))
			bad(r, "lowers", "must be absolute paths");
		o->lowers[o->lower_count++] = v->text;
	}
	o->upper = want_path(r, "upper", true, true);
	o->work = want_path(r, "work", true, true);
	if (!o->upper != !o->work)
		bad(r, "upper", "and work go together");
	if (r->bad || !o->upper)
		return;
	size_t n = (size_t)(strrchr(o->upper, '/') - o->upper);
	if (n == 0 || strncmp(o->upper, o->work, n + 1) != 0 || strrchr(o->work, '/') != o->work + n || strcmp(o->upper, o->work) == 0)
		bad(r, "work", "must be beside upper, in the same directory");
	else if (!plain_name(o->upper) || !plain_name(o->work))
		bad(r, "upper", "or work has a name that overlay options cannot carry");
}

static bool same_parent(const char *a, const char *b)
{
	size_t n = (size_t)(strrchr(a, '/') - a);
	return strrchr(b, '/') == b + n && strncmp(a, b, n) == 0;
}

static void parse_overlays(struct request *r, struct start *s)
{
	parse_overlay(r, &s->overlays[s->overlay_count++]);
	const char *writable = s->overlays[0].upper;
	for (const struct json *v = want_list(r, "overlays", 0, OVERLAYS_MAX - 1); v && !r->bad; v = json_next(&doc, v)) {
		struct overlay *o = &s->overlays[s->overlay_count++];
		struct request more = {.at = v};
		o->to = want_path(&more, "to", false, false);
		o->read_only = want_flag(&more, v, "readOnly", false);
		parse_overlay(&more, o);
		if (!more.bad && o->upper && writable && !same_parent(o->upper, writable))
			bad(&more, "upper", "of every overlay must be in one directory");
		if (!more.bad && o->upper)
			writable = o->upper;
		if (more.bad)
			bad(r, "overlays:", more.why);
	}
}

static bool parse_start(struct request *r, struct start *s)
{
	parse_overlays(r, s);
	for (const struct json *v = want_list(r, "binds", 0, BINDS_MAX); v && !r->bad; v = json_next(&doc, v)) {
		struct bind *b = &s->binds[s->bind_count++];
		const struct json *from = json_get(&doc, v, "from"), *to = json_get(&doc, v, "to");
		if (!good_path(from) || !good_path(to)) {
			bad(r, "binds", "need absolute paths in from and to");
			break;
		}
		*b = (struct bind){from->text, to->text, want_flag(r, v, "readOnly", true), want_flag(r, v, "idmap", true)};
	}
	const struct json *map = json_get(&doc, r->at, "map");
	struct request m = {.at = map};
	if (!map || map->type != JSON_OBJECT) {
		bad(r, "map", "is missing");
	} else {
		/* Never the host's own users: the range begins above 65535. */
		s->map_base = (uint32_t)want_number(&m, "base", 65536, 4294901759, 0);
		s->map_size = (uint32_t)want_number(&m, "size", 1, 1u << 24, 65536);
		if (m.bad || (uint64_t)s->map_base + s->map_size > 4294967295u)
			bad(r, "map", "is out of range");
	}
	s->cgroup_count = want_cgroups(r, s->cgroups);
	s->socket = want_path(r, "socket", false, true);
	if (!r->bad && strlen(s->socket) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		bad(r, "socket", "is longer than 107 bytes");
	s->libraries = want_path(r, "libraries", true, false);
	s->backlog = (int)want_number(r, "backlog", 1, 4096, 512);
	const struct json *config = json_get(&doc, r->at, "config");
	if (!config || config->type != JSON_STRING || config->length < 2)
		bad(r, "config", "must be the text of config.json");
	else
		s->config = config->text, s->config_length = config->length;
	int n = 0;
	for (const struct json *v = want_list(r, "runtime", 1, ARGS_MAX); v && !r->bad; v = json_next(&doc, v)) {
		if (v->type != JSON_STRING || v->length > 4000 || (n == 0 && !good_path(v)))
			bad(r, "runtime", "must be an absolute path and its arguments");
		s->runtime[n++] = v->text;
	}
	const struct json *limits = json_get(&doc, r->at, "userLimits");
	if (limits && (limits->type != JSON_OBJECT || limits->count > LIMITS_MAX))
		bad(r, "userLimits", "must be a small object");
	for (const struct json *key = limits && !r->bad ? json_child(&doc, limits) : NULL; key && !r->bad; key = json_next(&doc, key)) {
		const struct json *v = &doc.node[key->first];
		if (strncmp(key->text, "max_", 4) != 0 || key->length > 40 || strspn(key->text, "abcdefghijklmnopqrstuvwxyz_") != key->length || v->type != JSON_NUMBER || v->number < 0 || v->number > INT_MAX)
			bad(r, "userLimits", "holds a name or a number that is not allowed");
		s->limits[s->limit_count++] = (struct user_limit){key->text, v->number};
	}
	s->idmap = want_flag(r, r->at, "idmap", true);
	return !r->bad;
}

/* A pipe or pair, both ends above the descriptors a runtime gets, so that nothing has to be moved out of the way. */
static bool high(int fds[2])
{
	for (int i = 0; i < 2; i++) {
		int fd = fds[i] >= START_FD ? fds[i] : fcntl(fds[i], F_DUPFD_CLOEXEC, START_FD);
		if (fd != fds[i])
			close(fds[i]);
		fds[i] = fd;
	}
	return fds[0] >= 0 && fds[1] >= 0;
}

static void fork_failed(struct job *j, int64_t id)
{
	answer_fault(id, "fork", errno, "cannot start a child", NULL, 0);
	free_job(j);
}

static void on_start(struct request *r)
{
	static struct start s;
	memset(&s, 0, sizeof s);
	int64_t timeout = want_number(r, "timeoutMs", 1, 600000, 10000);
	if (!parse_start(r, &s)) {
		answer_fault(r->id, "request", EINVAL, r->why, NULL, 0);
		return;
	}
	struct job *j = new_job(START, r->id, timeout);
	if (!j) {
		answer_fault(r->id, "request", EAGAIN, "too many requests at once", NULL, 0);
		return;
	}
	int pair[2] = {-1, -1}, in[2] = {-1, -1}, out[2] = {-1, -1};
	bool made = keep_cgroups(j, s.cgroups, s.cgroup_count) && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 && high(pair) && pipe2(in, O_CLOEXEC) == 0 && high(in) && pipe2(out, O_CLOEXEC) == 0 && high(out);
	j->child = made ? fork() : -1;
	if (j->child == 0)
		start_child(&s, pair[1], in[0], out[1]);
	int error = errno;
	close_fd(&pair[1]);
	close_fd(&in[0]);
	close_fd(&in[1]);
	close_fd(&out[1]);
	j->report_fd = pair[0];
	j->output_fd = out[0];
	errno = error;
	if (j->child < 0) {
		fork_failed(j, r->id);
		return;
	}
	fcntl(j->output_fd, F_SETFL, O_NONBLOCK);
	watch_fd(j->report_fd, EPOLLIN, FROM_REPORT, (uint32_t)(j - jobs), j->generation);
	watch_fd(j->output_fd, EPOLLIN, FROM_OUTPUT, (uint32_t)(j - jobs), j->generation);
}

static void on_remove(struct request *r)
{
	const char *path = want_path(r, "path", false, true);
	int64_t timeout = want_number(r, "timeoutMs", 1, 3600000, 600000);
	if (r->bad) {
		answer_fault(r->id, "request", EINVAL, r->why, NULL, 0);
		return;
	}
	struct job *j = new_job(REMOVE, r->id, timeout);
	if (!j) {
		answer_fault(r->id, "request", EAGAIN, "too many requests at once", NULL, 0);
		return;
	}
	int pair[2] = {-1, -1};
	bool made = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 && high(pair);
	j->child = made ? fork() : -1;
	if (j->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(pair[1], 3);
		syscall(SYS_close_range, 4u, ~0u, 0u);
		remove_child(root_of(path), path, 3);
	}
	int error = errno;
	close_fd(&pair[1]);
	j->report_fd = pair[0];
	errno = error;
	if (j->child < 0)
		fork_failed(j, r->id);
}

static void on_kill(struct request *r)
{
	const struct json *who = json_get(&doc, r->at, "pid");
	bool nobody = !who || who->type == JSON_NULL;
	pid_t pid = nobody ? 0 : (pid_t)want_number(r, "pid", 2, INT_MAX, 0);
	const char *ticks = nobody ? "" : want_ticks(r);
	const char *cgroups[CGROUPS_MAX];
	int count = want_cgroups(r, cgroups);
	int64_t timeout = want_number(r, "timeoutMs", 1, 600000, 5000);
	if (pid == self)
		bad(r, "pid", "is the launcher");
	if (r->bad) {
		answer_fault(r->id, "request", EINVAL, r->why, NULL, 0);
		return;
	}
	struct job *j = new_job(KILL, r->id, timeout);
	if (!j || !keep_cgroups(j, cgroups, count)) {
		answer_fault(r->id, "request", EAGAIN, "too many requests at once", NULL, 0);
		if (j)
			free_job(j);
		return;
	}
	j->victim_fd = nobody ? -1 : open_process(pid, ticks);
	if (!nobody && j->victim_fd < 0 && errno != ESRCH && errno != EINVAL) {
		answer_fault(r->id, "kill", errno, "cannot open the process", NULL, 0);
		free_job(j);
		return;
	}
	if (j->victim_fd >= 0) {
		if (w_pidfd_kill(j->victim_fd, SIGKILL) == 0) {
			j->killed++;
		} else if (errno != ESRCH) {
			answer_fault(r->id, "kill", errno, "cannot kill the process", NULL, 0);
			free_job(j);
			return;
		}
		watch_fd(j->victim_fd, EPOLLIN, FROM_VICTIM, (uint32_t)(j - jobs), j->generation);
		return;
	}
	advance_kill(j);
}

static void emit_exited(struct watch *w)
{
	size_t at = frame_begin();
	put("{\"event\":\"exited\",\"pid\":%d,\"startTicks\":\"%s\"", (int)w->pid, w->ticks);
	if (w->reaped && WIFEXITED(w->status))
		put(",\"code\":%d", WEXITSTATUS(w->status));
	if (w->reaped && WIFSIGNALED(w->status))
		put(",\"signal\":%d", WTERMSIG(w->status));
	put("}");
	frame_end(at);
	unwatch_fd(&w->fd);
}

static void on_watch(struct request *r)
{
	pid_t pid = (pid_t)want_number(r, "pid", 2, INT_MAX, 0);
	const char *ticks = want_ticks(r);
	if (r->bad) {
		answer_fault(r->id, "request", EINVAL, r->why, NULL, 0);
		return;
	}
	int i = 0;
	while (i < watch_count && watches[i].fd >= 0)
		i++;
	if (i == WATCHES_MAX) {
		answer_fault(r->id, "request", EAGAIN, "too many watches", NULL, 0);
		return;
	}
	struct watch *w = &watches[i];
	uint32_t generation = i < watch_count ? w->generation + 1 : 0;
	*w = (struct watch){.pid = pid, .fd = open_process(pid, ticks), .generation = generation};
	if (i == watch_count)
		watch_count++;
	snprintf(w->ticks, sizeof w->ticks, "%s", ticks);
	if (w->fd < 0 && errno != ESRCH && errno != EINVAL) {
		answer_fault(r->id, "watch", errno, "cannot open the process", NULL, 0);
		return;
	}
	answer_ok(r->id);
	if (w->fd < 0)
		emit_exited(w); /* gone already */
	else
		watch_fd(w->fd, EPOLLIN, FROM_WATCH, (uint32_t)i, generation);
}

static void on_hello(struct request *r)
{
	size_t at = frame_begin();
	put_id(r->id);
	put("\"ok\":{\"version\":%d,\"pid\":%d,\"stage\":\"%s\"}}", VERSION, (int)self, STAGE);
	frame_end(at);
}

static void on_frame(char *text, size_t length)
{
	struct request r = {.at = json_read(&doc, text, length)};
	if (!r.at || r.at->type != JSON_OBJECT) {
		answer_fault(0, "frame", EPROTO, "not a JSON object of integers, strings, lists and objects", NULL, 0);
		return;
	}
	r.id = want_number(&r, "id", 1, 9007199254740991, 0);
	const struct json *op = json_get(&doc, r.at, "op");
	static const struct { const char *name; void (*call)(struct request *); } verbs[] = {
		{"hello", on_hello}, {"start", on_start}, {"kill", on_kill}, {"watch", on_watch}, {"remove", on_remove},
	};
	if (r.bad) {
		answer_fault(0, "request", EINVAL, r.why, NULL, 0);
		return;
	}
	if (id_in_use(r.id)) {
		answer_fault(r.id, "request", EALREADY, "the id is in use", NULL, 0);
		return;
	}
	for (size_t i = 0; op && op->type == JSON_STRING && i < sizeof verbs / sizeof *verbs; i++)
		if (strcmp(op->text, verbs[i].name) == 0) {
			verbs[i].call(&r);
			return;
		}
	answer_fault(r.id, "request", ENOSYS, "no such op", NULL, 0);
}

static void take_frames(void)
{
	size_t at = 0;
	while (!closing && jobs_taken < JOBS_MAX && input_used - at >= 4) {
		const unsigned char *p = (const unsigned char *)input + at;
		uint32_t n = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
		if (n == 0 || n > FRAME_MAX) {
			answer_fault(0, "frame", EPROTO, "a frame must be 1 to 1048576 bytes", NULL, 0);
			closing = true; /* there is no way back into step */
			break;
		}
		if (input_used - at - 4 < n)
			break;
		/* The reader terminates strings in place, at most over the closing quote: the next frame is safe. */
		on_frame(input + at + 4, n);
		at += 4 + n;
	}
	memmove(input, input + at, input_used - at);
	input_used -= at;
}

static void on_input(void)
{
	if (input_used == FRAME_MAX + 4)
		return; /* full of requests that wait for a free slot */
	ssize_t n = read(0, input + input_used, FRAME_MAX + 4 - input_used);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		closing = true;
		return;
	}
	input_used += (size_t)n;
	take_frames();
}

/* ---- the loop ---- */

static int next_timeout(uint64_t now)
{
	uint64_t first = UINT64_MAX;
	for (int i = 0; i < job_count; i++) {
		const struct job *j = &jobs[i];
		if (j->kind == FREE)
			continue;
		if (!j->doomed && j->deadline < first)
			first = j->deadline;
		if (j->retry && j->retry < first)
			first = j->retry;
	}
	return first == UINT64_MAX ? -1 : first <= now ? 0 : first - now > 60000 ? 60000 : (int)(first - now);
}

static void on_time(uint64_t now)
{
	for (int i = 0; i < job_count; i++) {
		struct job *j = &jobs[i];
		if (j->kind == FREE)
			continue;
		if (j->deadline <= now && !j->doomed) {
			if (j->kind == KILL)
				advance_kill(j);
			else
				doom(j, ETIMEDOUT, "took longer than timeoutMs");
		} else if (j->retry && j->retry <= now) {
			j->retry = 0;
			advance(j);
		}
	}
}

static void on_event(const struct epoll_event *e)
{
	enum source source = (enum source)(e->data.u64 >> 56);
	uint32_t generation = (uint32_t)(e->data.u64 >> 32) & 0xffffff, index = (uint32_t)e->data.u64;
	if (source == FROM_STDIN) {
		if (!closing)
			on_input();
		return;
	}
	if (source == FROM_SIGNALS) {
		struct signalfd_siginfo info;
		while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
			if (info.ssi_signo != SIGCHLD)
				closing = true;
		reap();
		return;
	}
	if (source == FROM_STDOUT) {
		if (e->events & (EPOLLERR | EPOLLHUP))
			closing = true;
		return;
	}
	if (source == FROM_WATCH) {
		struct watch *w = &watches[index];
		if (w->fd >= 0 && (w->generation & 0xffffff) == generation) {
			reap(); /* if it was ours, its status comes along */
			emit_exited(w);
		}
		return;
	}
	struct job *j = &jobs[index];
	if (j->kind == FREE || (j->generation & 0xffffff) != generation)
		return;
	if (source == FROM_REPORT)
		read_report(j);
	if (source == FROM_OUTPUT)
		read_output(j);
	if (source == FROM_VICTIM) {
		reap();
		unwatch_fd(&j->victim_fd);
		advance_kill(j);
	}
}

static bool busy(void)
{
	for (int i = 0; i < job_count; i++)
		if (jobs[i].kind != FREE)
			return true;
	return false;
}

static void loop(void)
{
	bool told = false;
	uint64_t last_call = 0;
	for (;;) {
		flush_output();
		if (input_used && !paused && !closing) {
			take_frames(); /* what was left when it was paused */
			flush_output();
		}
		if (closing && !told) {
			/* Half-made sandboxes go; finished ones and kills under way stay as asked. */
			told = true;
			last_call = now_ms() + 5000;
			epoll_ctl(epoll_fd, EPOLL_CTL_DEL, 0, NULL);
			for (int i = 0; i < job_count; i++)
				if (jobs[i].kind == START || jobs[i].kind == REMOVE)
					doom(&jobs[i], ECANCELED, "the launcher is ending");
		}
		if (closing && (!busy() || now_ms() > last_call))
			return;
		struct epoll_event events[64];
		int timeout = next_timeout(now_ms());
		int n = epoll_wait(epoll_fd, events, 64, closing && (timeout < 0 || timeout > 100) ? 100 : timeout);
		if (n < 0 && errno != EINTR)
			die("epoll_wait");
		for (int i = 0; i < n; i++)
			on_event(&events[i]);
		on_time(now_ms());
	}
}

/* crun refuses a machine whose cgroup2 mount holds controllers beside v1 ("hybrid"): hide that one mount, from us alone. */
static void hide_hybrid(void)
{
	const char *unified = "/sys/fs/cgroup/unified";
	struct statfs top, fs;
	if (statfs("/sys/fs/cgroup", &top) < 0 || top.f_type == W_CGROUP2_MAGIC || statfs(unified, &fs) < 0 || fs.f_type != W_CGROUP2_MAGIC)
		return;
	char controllers[256];
	int fd = open("/sys/fs/cgroup/unified/cgroup.controllers", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, controllers, sizeof controllers);
	close_fd(&fd);
	if (n > 1 && umount2(unified, MNT_DETACH) < 0)
		die("cannot hide the cgroup2 mount");
}

int main(int count, char **arguments)
{
	for (int i = 1; i < count; i++) {
		struct json v = {.type = JSON_STRING, .text = i + 1 < count ? arguments[i + 1] : NULL};
		v.length = v.text ? strlen(v.text) : 0;
		if (strcmp(arguments[i], "--root") != 0 || !v.text || !good_path(&v) || root_count == ROOTS_MAX) {
			dprintf(2, "usage: warren-launch --root DIR [--root DIR …]   (absolute; frames on standard input and output)\n");
			return 2;
		}
		roots[root_count++] = arguments[++i];
	}
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	self = getpid();
	syscall(SYS_close_range, 3u, ~0u, 0u);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		die("cannot make a private mount namespace (root is needed)");
	hide_hybrid();
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		die("cannot become a subreaper");
	signal(SIGPIPE, SIG_IGN);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int e = epoll_create1(EPOLL_CLOEXEC), s = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	epoll_fd = fcntl(e, F_DUPFD_CLOEXEC, START_FD);
	signal_fd = fcntl(s, F_DUPFD_CLOEXEC, START_FD);
	close(e);
	close(s);
	input = malloc(FRAME_MAX + 8);
	watches = calloc(WATCHES_MAX, sizeof *watches);
	if (epoll_fd < 0 || signal_fd < 0 || !input || !watches)
		die("cannot begin");
	fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
	fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_NONBLOCK);
	watch_fd(signal_fd, EPOLLIN, FROM_SIGNALS, 0, 0);
	watch_fd(0, EPOLLIN, FROM_STDIN, 0, 0);
	watch_fd(1, 0, FROM_STDOUT, 0, 0);
	loop();
	return 0;
}
