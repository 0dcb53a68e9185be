/*
 * Loaded into a program before its own libraries: what it asks of the machine goes wrong as a test says. Writes below a folder fail, one by
 * number or all from one on, and the wall clock is off by so much. The test says it in a file that both have mapped (see mishap.ts).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* In the order of `fields` in mishap.ts. */
struct orders {
  _Atomic int64_t clock_ms;
  _Atomic int64_t writes;
  _Atomic int64_t fail_from;
  _Atomic int64_t fail_to;
  _Atomic int64_t fail_errno;
  _Atomic int64_t hits;
  _Atomic int64_t turns;
  _Atomic int64_t unused;
  char last[448];
};

static struct orders *orders;
static char below[256];
static size_t below_length;

/* Looked for once: looking takes locks, and who writes may be the handler of a signal that came to somebody who holds them. */
#define REAL(name)                                                     \
  ({                                                                   \
    static _Atomic(__typeof__(&name)) found;                           \
    __typeof__(&name) known = found;                                   \
    if (!known) found = known = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
    known;                                                             \
  })

__attribute__((constructor)) static void begin(void) {
  const char *file = getenv("MISHAP_FILE"), *folder = getenv("MISHAP_BELOW");
  /* Its children are another matter. */
  unsetenv("LD_PRELOAD");
  if (!file || !folder || strlen(folder) >= sizeof below) return;
  int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void *mapped = mmap(NULL, sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) return;
  strcpy(below, folder);
  below_length = strlen(folder);
  /* What handlers of signals call is found before there are any. */
  write(-1, "", 0);
  orders = mapped;
}

static int is_below(const char *path) { return strncmp(path, below, below_length) == 0; }

/* Whether this one fails; errno is set then. */
static int strikes(const char *what, const char *path) {
  if (!orders || !is_below(path)) return 0;
  int64_t number = atomic_fetch_add(&orders->writes, 1) + 1;
  int64_t from = atomic_load(&orders->fail_from);
  if (from == 0 || number < from || number > atomic_load(&orders->fail_to)) return 0;
  if (atomic_fetch_add(&orders->hits, 1) == 0)
    snprintf(orders->last, sizeof orders->last, "%s %s", what, path + below_length);
  errno = (int)atomic_load(&orders->fail_errno);
  return 1;
}

/* Only files: pipes and sockets take no room. */
static int strikes_fd(const char *what, int fd) {
  struct stat found;
  char link[64], path[4096];
  if (!orders || fstat(fd, &found) != 0 || (!S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode))) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strikes(what, path);
}

ssize_t write(int fd, const void *bytes, size_t count) {
  return strikes_fd("write", fd) ? -1 : REAL(write)(fd, bytes, count);
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
  return strikes_fd("pwrite", fd) ? -1 : REAL(pwrite)(fd, bytes, count, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
  return strikes_fd("pwrite", fd) ? -1 : REAL(pwrite64)(fd, bytes, count, at);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
  return strikes_fd("writev", fd) ? -1 : REAL(writev)(fd, parts, count);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
  return strikes_fd("pwritev", fd) ? -1 : REAL(pwritev)(fd, parts, count, at);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
  return strikes_fd("pwritev", fd) ? -1 : REAL(pwritev64)(fd, parts, count, at);
}
int fsync(int fd) { return strikes_fd("fsync", fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return strikes_fd("fdatasync", fd) ? -1 : REAL(fdatasync)(fd); }
int fallocate(int fd, int mode, off_t at, off_t length) {
  return strikes_fd("fallocate", fd) ? -1 : REAL(fallocate)(fd, mode, at, length);
}
int fallocate64(int fd, int mode, off64_t at, off64_t length) {
  return strikes_fd("fallocate", fd) ? -1 : REAL(fallocate64)(fd, mode, at, length);
}
ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t length, unsigned flags) {
  return strikes_fd("copy", out) ? -1 : REAL(copy_file_range)(in, in_at, out, out_at, length, flags);
}

/* Those relative to an open folder are nobody's here, or below the current one, which is not ours. */
static int strikes_new(const char *what, const char *path) { return path[0] == '/' && strikes(what, path); }

static int strikes_open(const char *path, int flags) {
  struct stat found;
  return (flags & O_CREAT) && orders && is_below(path) && lstat(path, &found) != 0 && strikes_new("create", path);
}

#define OPENED(name, ...)                                     \
  mode_t mode = 0;                                            \
  if (flags & (O_CREAT | __O_TMPFILE)) {                      \
    va_list more;                                             \
    va_start(more, flags);                                    \
    mode = va_arg(more, mode_t);                              \
    va_end(more);                                             \
  }                                                           \
  return strikes_open(path, flags) ? -1 : REAL(name)(__VA_ARGS__, flags, mode);

int open(const char *path, int flags, ...) { OPENED(open, path) }
int open64(const char *path, int flags, ...) { OPENED(open64, path) }
int openat(int at, const char *path, int flags, ...) { OPENED(openat, at, path) }
int openat64(int at, const char *path, int flags, ...) { OPENED(openat64, at, path) }

int mkdir(const char *path, mode_t mode) {
  struct stat found;
  return lstat(path, &found) != 0 && strikes_new("mkdir", path) ? -1 : REAL(mkdir)(path, mode);
}
int rename(const char *from, const char *to) { return strikes_new("rename", to) ? -1 : REAL(rename)(from, to); }
int link(const char *from, const char *to) { return strikes_new("link", to) ? -1 : REAL(link)(from, to); }
int symlink(const char *target, const char *to) { return strikes_new("symlink", to) ? -1 : REAL(symlink)(target, to); }
int bind(int fd, const struct sockaddr *address, socklen_t length) {
  const struct sockaddr_un *local = (const void *)address;
  int is_path = address->sa_family == AF_UNIX && length > sizeof(sa_family_t) && local->sun_path[0] == '/';
  return is_path && strikes("bind", local->sun_path) ? -1 : REAL(bind)(fd, address, length);
}

static int64_t off_by(void) { return orders ? atomic_load(&orders->clock_ms) : 0; }

int clock_gettime(clockid_t which, struct timespec *time) {
  int result = REAL(clock_gettime)(which, time);
  if (result == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) time->tv_sec += off_by() / 1000;
  return result;
}
int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  int result = REAL(gettimeofday)(time, zone);
  if (result == 0) time->tv_sec += off_by() / 1000;
  return result;
}
time_t time(time_t *told) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (told) *told = now.tv_sec;
  return now.tv_sec;
}

/* How often its loop has turned. */
int epoll_pwait(int fd, struct epoll_event *events, int most, int timeout, const sigset_t *mask) {
  if (orders) atomic_fetch_add(&orders->turns, 1);
  return REAL(epoll_pwait)(fd, events, most, timeout, mask);
}
int epoll_wait(int fd, struct epoll_event *events, int most, int timeout) {
  if (orders) atomic_fetch_add(&orders->turns, 1);
  return REAL(epoll_wait)(fd, events, most, timeout);
}
