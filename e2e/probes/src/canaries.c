// What a program in a sandbox must not find: held by a process on the host until its stdin ends.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "probe.h"

static int listening(int family, const void *at, socklen_t size) {
    int fd = socket(family, SOCK_STREAM, 0);
    return fd >= 0 && bind(fd, at, size) == 0 && listen(fd, 64) == 0 ? fd : -1;
}

static int local(const char *name, int is_abstract) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path + is_abstract, sizeof at.sun_path - 1, "%s", name);
    return listening(AF_UNIX, &at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)is_abstract + strlen(name)));
}

int hold_canaries(const char *mark) {
    char memory[96], socket_path[96], file[96], byte;
    snprintf(memory, sizeof memory, "/dev/shm/%s", mark);
    snprintf(socket_path, sizeof socket_path, "/tmp/%s.sock", mark);
    snprintf(file, sizeof file, "/tmp/%s.txt", mark);
    umask(0);
    // Readable to everybody: what keeps a sandbox from them is the sandbox.
    int shared = open(memory, O_CREAT | O_EXCL | O_RDWR, 0666), plain = open(file, O_CREAT | O_EXCL | O_RDWR, 0666);
    if (shared < 0 || plain < 0 || local(mark, 1) < 0 || local(socket_path, 0) < 0) return 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    int port = listening(AF_INET, &at, sizeof at);
    socklen_t size = sizeof at;
    if (port < 0 || getsockname(port, (struct sockaddr *)&at, &size) != 0) return 1;
    int key = 0x5a000000 | (getpid() & 0xffffff);
    int queue = msgget(key, IPC_CREAT | IPC_EXCL | 0666);
    printf("mark=%s\nport=%d\nqueue=%d\nsocket=%s\nfile=%s\n\n", mark, ntohs(at.sin_port), key, socket_path, file);
    fflush(stdout);
    while (read(0, &byte, 1) > 0) continue;
    if (queue >= 0) msgctl(queue, IPC_RMID, NULL);
    unlink(memory);
    unlink(socket_path);
    unlink(file);
    return queue < 0;
}
