#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "limits.h"
#include "loop.h"

struct drain {
    struct source source;
    struct drain *next, *prev;
};

static uint8_t *space;
static struct drain *drains, *oldest;
static unsigned drainCount;

uint8_t *scratch(void) {
    if (!space) {
        void *p = mmap(NULL, READ_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) abort(); // reserved once, at the first use: there is no way on without it
        madvise(p, READ_CHUNK, MADV_DONTFORK);
        space = p;
    }
    return space;
}

void scratch_release(void) {
    if (space) madvise(space, READ_CHUNK, MADV_DONTNEED);
}

static void drain_close(struct drain *d) {
    if (d->next) d->next->prev = d->prev;
    else oldest = d->prev;
    if (d->prev) d->prev->next = d->next;
    else drains = d->next;
    if (--drainCount == 0) scratch_release();
    source_close(&d->source);
    loop_free(d);
}

static void drain_ready(struct source *s, uint32_t events) {
    (void)events;
    ssize_t n = read(s->fd, scratch(), READ_CHUNK);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
    drain_close(owner_of(s, struct drain, source));
}

void drain(int fd) {
    struct drain *d = calloc(1, sizeof *d);
    if (!d || !source_add(&d->source, fd, EPOLLIN, drain_ready)) {
        free(d);
        close(fd);
        return;
    }
    d->next = drains;
    if (drains) drains->prev = d;
    else oldest = d;
    drains = d;
    if (++drainCount > DRAINS_MAX) drain_close(oldest);
}

int unread_bytes(int fd) {
    int n = 0;
    return ioctl(fd, FIONREAD, &n) == 0 ? n : 0;
}

void grow_pipe(int fd) { fcntl(fd, F_SETPIPE_SZ, PIPE_GROWN); }
