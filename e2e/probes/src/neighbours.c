// What is beside the sandbox: canaries that somebody holds on the host, and addresses that must lead nowhere.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include "probe.h"

enum { CONNECT_MS = 300 };

static socklen_t abstract(struct sockaddr_un *at, const char *name) {
    memset(at, 0, sizeof *at);
    at->sun_family = AF_UNIX;
    memcpy(at->sun_path + 1, name, strlen(name));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static int finds_abstract(const struct attempt *a) {
    const char *name = told("mark");
    struct sockaddr_un at;
    (void)a;
    if (!name) return ABSENT;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return fd < 0 ? errno : carried_out(connect(fd, (struct sockaddr *)&at, abstract(&at, name)));
}

static int finds_socket(const struct attempt *a) {
    const char *path = a->path ? a->path : told("socket");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (!path) return ABSENT;
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return fd < 0 ? errno : carried_out(connect(fd, (struct sockaddr *)&at, sizeof at));
}

// OPEN also when it is refused over there: the way was open.
static int reaches(const char *address, int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, address, &at.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error = 0;
    if (fd < 0) return errno;
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0) return OPEN;
    if (errno != EINPROGRESS) return errno;
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    if (poll(&ready, 1, CONNECT_MS) != 1) return ETIMEDOUT;
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

static int finds_port(const struct attempt *a) {
    const char *port = told("port");
    return port ? reaches(a->path, atoi(port)) : ABSENT;
}

static int finds_host_address(const struct attempt *a) {
    const char *port = told("port"), *address = told("address");
    (void)a;
    return port && address ? reaches(address, atoi(port)) : ABSENT;
}

static int reaches_address(const struct attempt *a) { return reaches(a->path, (int)a->number); }

static int finds_queue(const struct attempt *a) {
    const char *key = told("queue");
    (void)a;
    return key ? carried_out(msgget((key_t)strtol(key, NULL, 10), 0)) : ABSENT;
}

static int finds_memory(const struct attempt *a) {
    const char *name = told("mark");
    char path[128];
    (void)a;
    if (!name) return ABSENT;
    snprintf(path, sizeof path, "/dev/shm/%s", name);
    return carried_out(open(path, O_RDONLY));
}

static int finds_file(const struct attempt *a) {
    const char *path = told("file");
    return path ? carried_out(open(path, (int)a->number | O_CLOEXEC)) : ABSENT;
}

// To now, which needs no more than the right to write: nothing is opened.
static int dates_file(const struct attempt *a) {
    const char *path = told("file");
    (void)a;
    return path ? carried_out(utimensat(AT_FDCWD, path, NULL, 0)) : ABSENT;
}

static int sees_file(const struct attempt *a) {
    const char *path = told("file");
    struct stat st;
    (void)a;
    return path ? carried_out(stat(path, &st)) : ABSENT;
}

static int cuts_file(const struct attempt *a) {
    const char *path = told("file");
    (void)a;
    return path ? carried_out(truncate(path, 0)) : ABSENT;
}

static int removes_file(const struct attempt *a) {
    char to[128];
    const char *path = told("file");
    (void)a;
    if (!path) return ABSENT;
    // Given its name again at once where it can be taken away.
    snprintf(to, sizeof to, "%s.moved", path);
    int result = carried_out(rename(path, to));
    if (result == OPEN) result = carried_out(rename(to, path));
    return result;
}

// By its command line, whatever its number in here.
static pid_t canary(void) {
    char path[300], text[256];
    const char *mark = told("mark");
    DIR *folder = opendir("/proc");
    pid_t found = 0;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text);
        if (fd >= 0) close(fd);
        if (size > 0 && memmem(text, (size_t)size, "--canaries", 10) && memmem(text, (size_t)size, mark, strlen(mark)))
            found = atoi(entry->d_name);
    }
    if (folder) closedir(folder);
    return found;
}

static int sees_process(const struct attempt *a) {
    (void)a;
    if (!told("mark")) return ABSENT;
    return canary() ? OPEN : ESRCH;
}

static int signals_process(const struct attempt *a) {
    (void)a;
    // Its number may be another's in here: only by its own line it is the one.
    pid_t found = told("mark") ? canary() : 0;
    return found ? carried_out(kill(found, 0)) : ESRCH;
}

static int reads_environ(const struct attempt *a) {
    char path[64];
    pid_t pid = told("mark") ? canary() : 0;
    if (!pid) return ESRCH;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, a->path);
    return carried_out(open(path, O_RDONLY));
}

// Allowed where they are the sandbox's own; each is taken away again.
static int makes_ipc(const struct attempt *a) {
    long id = syscall(a->number, IPC_PRIVATE, a->args[0], 0600 | a->args[1]);
    if (id < 0) return errno;
    syscall(a->args[2], id, a->args[3], IPC_RMID, 0);
    return OPEN;
}

static int low_port(const struct attempt *a) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(871)};
    (void)a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? errno : carried_out(bind(fd, (struct sockaddr *)&at, sizeof at));
}

static int sees_device(const struct attempt *a) {
    char line[256];
    FILE *f = fopen("/proc/net/dev", "r");
    int found = ENODEV;
    (void)a;
    if (!f) return errno;
    for (int n = 0; fgets(line, sizeof line, f); n++)
        if (n >= 2 && !strstr(line, "lo:")) found = OPEN;
    fclose(f);
    return found;
}

#define TO(name, address, port) {.id = "reach." name, .make = reaches_address, .path = address, .number = port}
#define SOCKET(name, at) {.id = "reach." name, .make = finds_socket, .path = at}

static const struct attempt table[] = {
    {.id = "canary.abstract_socket", .make = finds_abstract}, {.id = "canary.socket", .make = finds_socket},
    {.id = "canary.loopback", .make = finds_port, .path = "127.0.0.1"}, {.id = "canary.any_address", .make = finds_port, .path = "0.0.0.0"},
    {.id = "canary.host_address", .make = finds_host_address}, {.id = "canary.queue", .make = finds_queue},
    {.id = "canary.shared_memory", .make = finds_memory}, {.id = "canary.file_read", .make = finds_file, .number = O_RDONLY},
    {.id = "canary.file_write", .make = finds_file, .number = O_WRONLY},
    {.id = "canary.file_seen", .make = sees_file}, {.id = "canary.file_dated", .make = dates_file},
    {.id = "canary.file_cut", .make = cuts_file}, {.id = "canary.file_moved", .make = removes_file}, {.id = "canary.process_seen", .make = sees_process},
    {.id = "canary.process_signal", .make = signals_process}, {.id = "canary.process_environ", .make = reads_environ, .path = "environ"},
    {.id = "canary.process_memory", .make = reads_environ, .path = "mem"}, {.id = "canary.process_root", .make = reads_environ, .path = "root/etc/hostname"},
    TO("metadata", "169.254.169.254", 80), TO("gateway", "10.0.2.2", 80), TO("public", "192.0.2.1", 80),
    SOCKET("docker", "/var/run/docker.sock"), SOCKET("containerd", "/run/containerd/containerd.sock"),
    SOCKET("dbus", "/run/dbus/system_bus_socket"), SOCKET("systemd", "/run/systemd/private"),
    {.id = "reach.network_device", .make = sees_device}, {.id = "reach.low_port", .make = low_port},
    {.id = "ipc.queue", .make = makes_ipc, .number = SYS_msgget, .args = {IPC_CREAT | 0600, 0, SYS_msgctl, IPC_RMID}},
    {.id = "ipc.semaphore", .make = makes_ipc, .number = SYS_semget, .args = {1, IPC_CREAT, SYS_semctl, 0}},
    {.id = "ipc.memory", .make = makes_ipc, .number = SYS_shmget, .args = {4096, IPC_CREAT, SYS_shmctl, IPC_RMID}},
};
GROUP(neighbours, table);
