// What one user of a machine could leave for the next, in places that are no files.
#define _GNU_SOURCE
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "probe.h"

enum { MEMORY_BYTES = 48 << 20, PORT = 4711 };

static int lines_of(const char *path, int headings, const char *containing) {
    char line[1024];
    int count = 0;
    FILE *f = fopen(path, "r");
    for (int n = 0; f && fgets(line, sizeof line, f); n++)
        if (n >= headings && (!containing || strstr(line, containing))) count++;
    if (f) fclose(f);
    return count;
}

static size_t not_zero(void) {
    size_t count = 0;
    unsigned char *piece = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (piece == MAP_FAILED) return MEMORY_BYTES;
    for (size_t i = 0; i < MEMORY_BYTES; i++) count += piece[i] != 0;
    return count;
}

// Only what a sandbox that nobody has used does not have.
int find_residue(void) {
    printf("queues %d\nsemaphores %d\nsegments %d\n", lines_of("/proc/sysvipc/msg", 1, NULL), lines_of("/proc/sysvipc/sem", 1, NULL),
           lines_of("/proc/sysvipc/shm", 1, NULL));
    printf("abstract %d\nlistening %d\nmemory %zu\n", lines_of("/proc/net/unix", 1, "@residue"), lines_of("/proc/net/tcp", 1, ":1267 "),
           not_zero());
    return 0;
}

// Goes on in the background with the mark in all of them.
int plant_residue(const char *mark) {
    int queue = msgget(IPC_PRIVATE, IPC_CREAT | 0666), segment = shmget(0x5eed, 4096, IPC_CREAT | 0666);
    int semaphore = semget(0x5eed, 1, IPC_CREAT | 0666), port = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
    struct { long type; char text[64]; } message = {.type = 1};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    memcpy(name.sun_path + 1, "residue", 7);
    snprintf(message.text, sizeof message.text, "%s", mark);
    char *shared = segment < 0 ? (char *)-1 : shmat(segment, NULL, 0);
    char *heap = malloc(MEMORY_BYTES);
    if (queue < 0 || semaphore < 0 || shared == (char *)-1 || !heap || msgsnd(queue, &message, 64, 0) != 0) return 1;
    if (bind(port, (struct sockaddr *)&at, sizeof at) != 0 || listen(port, 1) != 0) return 2;
    if (bind(local, (struct sockaddr *)&name, offsetof(struct sockaddr_un, sun_path) + 8) != 0 || listen(local, 1) != 0) return 3;
    snprintf(shared, 4096, "%s", mark);
    for (size_t i = 0; i + 64 < MEMORY_BYTES; i += 64) snprintf(heap + i, 64, "%s", mark);
    printf("planted\n");
    fflush(stdout);
    if (daemon(0, 0) != 0) return 4;
    for (;;) pause();
}
