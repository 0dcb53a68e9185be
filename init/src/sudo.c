// PID 1's side. Whoever connects is code of the sandbox: it may ask for root inside, and for nothing else.
#include "sudo.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "config.h"
#include "launch.h"
#include "pty.h"
#include "reap.h"
#include "signals.h"
#include "sweep.h"

struct sudo {
    struct child child;
    struct source status;
    struct conn *conn; // NULL: the shim has gone
    int master;        // waits for the program to run, then goes to the shim
    char mark[MARK_LEN + 1];
};

static void sudo_free(struct sudo *s) {
    source_close(&s->status);
    if (s->master >= 0) close(s->master);
    loop_free(s);
}

static void exit_frame(struct conn *c, int status) {
    if (WIFEXITED(status)) conn_json(c, "{\"ev\":\"exit\",\"code\":%d}", WEXITSTATUS(status));
    else conn_json(c, "{\"ev\":\"exit\",\"code\":%d}", 128 + WTERMSIG(status));
    conn_end(c);
}

static void status_ready(struct source *source, uint32_t events);

static void ended(struct child *child, int status, const struct rusage *usage) {
    (void)usage;
    struct sudo *s = owner_of(child, struct sudo, child);
    if (s->status.fd >= 0) status_ready(&s->status, 0);
    if (s->conn) exit_frame(s->conn, status);
    sudo_free(s);
}

// The terminal's master goes to the shim, which relays by itself: PID 1 never sees a byte of it.
static void send_started(struct sudo *s) {
    char body[64];
    uint8_t head[5];
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    int n = snprintf(body, sizeof body, "{\"ev\":\"started\",\"pid\":%d}", (int)s->child.pid);
    frame_header(head, 0, (size_t)n - 1);
    struct iovec parts[2] = {{head, FRAME_HEADER}, {body, (size_t)n}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
    if (s->master >= 0) {
        m.msg_control = control.space;
        m.msg_controllen = sizeof control.space;
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(h), &s->master, sizeof(int));
    }
    // The first frame on this socket: it fits, or the shim is not one of ours.
    if (sendmsg(s->conn->source.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) signal_group(s->child.pid, SIGKILL);
}

static void status_ready(struct source *source, uint32_t events) {
    (void)events;
    struct sudo *s = owner_of(source, struct sudo, status);
    struct launch_report r;
    ssize_t n = read(source->fd, &r, sizeof r);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    source_close(source);
    if (s->conn && n == (ssize_t)sizeof r) {
        conn_fault(s->conn, launch_code(r), r.error, "%s: %s", launch_word(r), strerror(r.error));
        s->conn = NULL;
    } else if (s->conn) {
        send_started(s);
    }
    if (s->master >= 0) close(s->master);
    s->master = -1;
}

static bool later_frame(struct conn *c, const struct frame *f) {
    struct sudo *s = c->owner;
    struct request r = {0};
    struct json op;
    if (f->tag != TAG_JSON || !json_check((const char *)f->data, f->len, &r.root)) return true;
    if (!json_get(r.root, "op", &op) || !json_equals(op, "signal")) return true;
    char *name = request_string(&r, "name");
    int number = name ? signal_number(name) : 0;
    free(name);
    if (number) signal_group(s->child.pid, number);
    return true;
}

static void gone(struct conn *c) {
    struct sudo *s = c->owner;
    s->conn = NULL;
    signal_group(s->child.pid, SIGKILL);
}

static const struct conn_ops running = {later_frame, NULL, gone};

// Who asks is what the kernel says, not what the request says.
static bool add_caller(struct conn *c, struct command *m) {
    struct ucred peer;
    socklen_t n = sizeof peer;
    struct user caller;
    char digits[2][24];
    if (getsockopt(c->source.fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0) return false;
    snprintf(digits[0], sizeof digits[0], "%u", (unsigned)peer.uid);
    snprintf(digits[1], sizeof digits[1], "%u", (unsigned)peer.gid);
    user_find(digits[0], &caller); // only for its name
    struct list env = {0};
    bool good = list_default(&env, "SUDO_USER", caller.name) && list_default(&env, "SUDO_UID", digits[0]) &&
                list_default(&env, "SUDO_GID", digits[1]);
    for (char **e = m->envp; good && *e; e++)
        if (strncmp(*e, "SUDO_", 5) != 0) good = list_add(&env, strdup(*e));
    for (char **e = m->envp; *e; e++) free(*e);
    free(m->envp);
    m->envp = env.at;
    return good;
}

static bool begin(struct sudo *s, struct conn *c, struct request *r, struct command *m) {
    struct launch l = launch_none;
    int slave = -1, status = -1;
    struct json tty, key, value;
    bool isTty[3] = {false, false, false}, any = false;
    if (json_get(r->root, "tty", &tty)) {
        struct json_walk w = json_open(tty);
        for (int i = 0; i < 3 && json_next(&w, &key, &value); i++) any |= isTty[i] = json_is(value, 't') && *value.at == 't';
    }
    int cols = (int)request_int(r, "cols", 80, 0, 65535), rows = (int)request_int(r, "rows", 24, 0, 65535);
    if (any && !pty_open(&s->master, &slave, cols, rows)) return false;
    l.argv = m->argv;
    l.envp = m->envp;
    l.cwd = m->cwd;
    l.user = m->user;
    l.tty = l.chown = slave;
    for (int i = 0; i < 3; i++) {
        c->passed[i] = fd_high(c->passed[i]);
        l.fds[i] = isTty[i] ? slave : c->passed[i];
    }
    pid_t pid = launch(&l, &status);
    int error = errno;
    if (slave >= 0) close(slave);
    for (int i = 0; i < 3; i++) {
        if (c->passed[i] >= 0) close(c->passed[i]);
        c->passed[i] = -1;
    }
    errno = error;
    if (pid < 0) return false;
    s->child = (struct child){.pid = pid, .ended = ended};
    reap_add(&s->child);
    fcntl(status, F_SETFL, O_NONBLOCK);
    source_add(&s->status, status, EPOLLIN, status_ready);
    return true;
}

static bool first_frame(struct conn *c, const struct frame *f) {
    struct request r = {0};
    struct json op;
    struct command m;
    timer_clear(&c->timer);
    c->wantsFds = false;
    bool well = f->tag == TAG_JSON && json_check((const char *)f->data, f->len, &r.root) &&
                json_get(r.root, "op", &op) && json_equals(op, "sudo") && c->passed[2] >= 0;
    if (!well || !config.dev) {
        conn_fault(c, well ? "forbidden" : "invalid", 0, "not a sudo request");
        return true;
    }
    struct sudo *s = calloc(1, sizeof *s);
    if (!s) {
        conn_fault(c, "limit", ENOMEM, "out of memory");
        return true;
    }
    s->status.fd = s->master = -1;
    mark_new(s->mark);
    if (!command_read(c, &r, s->mark, true, &m)) {
        free(s);
        return true;
    }
    if (add_caller(c, &m) && begin(s, c, &r, &m)) {
        s->conn = c;
        c->owner = s;
        c->ops = &running;
    } else {
        int error = errno;
        if (s->master >= 0) close(s->master);
        free(s);
        conn_fault(c, "limit", error, "could not start a process: %s", strerror(error));
    }
    command_free(&m);
    return true;
}

static void nobody(struct conn *c) { (void)c; }

const struct conn_ops sudo_ops = {first_frame, NULL, nobody};
