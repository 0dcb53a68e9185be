// The program `sudo` inside a sandbox: asks PID 1, lends it descriptors 0-2, passes signals on and the exit code back.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include "config.h"
#include "limits.h"
#include "signals.h"
#include "sudo.h"

extern char **environ;

struct options {
    const char *user;
    bool keepEnv, login, shell, validate, forget;
    char **assignments, **command;
};

struct relay {
    int socket, master;
    int out;    // where the terminal's output goes
    int tty;    // the caller's terminal, -1: none
    bool input; // its keys are for the command
    struct termios saved;
    uint8_t in[4096];
    size_t have;
};

static int die(const char *why) {
    fprintf(stderr, "sudo: %s\n", why);
    return 1;
}

static int usage(void) {
    fprintf(stderr, "usage: sudo [-EHSkniv] [-s] [-u user] [VAR=value] [--] command [args]\n");
    return 1;
}

// --- options ---

static bool short_option(char c, struct options *o) {
    switch (c) {
    case 'E': o->keepEnv = true; return true;
    case 'i': o->login = true; return true;
    case 's': o->shell = true; return true;
    case 'v': o->validate = true; return true;
    case 'k': o->forget = true; return true;
    case 'n': case 'S': case 'H': case 'b': return true; // there is never a password, and HOME is always the target's
    default: return false;
    }
}

static bool long_option(const char *name, struct options *o) {
    static const struct { const char *name; char c; } table[] = {
        {"preserve-env", 'E'}, {"login", 'i'}, {"shell", 's'}, {"validate", 'v'}, {"reset-timestamp", 'k'},
        {"non-interactive", 'n'}, {"stdin", 'S'}, {"set-home", 'H'}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strncmp(name, table[i].name, strlen(table[i].name)) == 0) return short_option(table[i].c, o);
    return false;
}

static bool parse(int argc, char **argv, struct options *o) {
    int i = 0;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strncmp(argv[i], "--user=", 7) == 0) {
            o->user = argv[i] + 7;
            continue;
        }
        if (strncmp(argv[i], "--", 2) == 0) {
            if (!long_option(argv[i] + 2, o)) return false;
            continue;
        }
        for (char *p = argv[i] + 1; *p; p++) {
            if (*p == 'u') {
                o->user = p[1] ? p + 1 : ++i < argc ? argv[i] : NULL;
                if (!o->user) return false;
                break;
            }
            if (!short_option(*p, o)) return false;
        }
    }
    o->assignments = argv + i;
    while (i < argc && strchr(argv[i], '=') && argv[i][0] != '=' && argv[i][0] != '/') i++;
    o->command = argv + i;
    return true;
}

// --- the request ---

// Without -E only what a program needs to look and speak right, and to find the network.
static bool is_kept(const char *entry) {
    static const char *const names[] = {"TERM=", "COLORTERM=", "LANG=", "LANGUAGE=", "LC_", "TZ=", "DISPLAY=",
                                        "http_proxy=", "https_proxy=", "no_proxy=", "all_proxy=", "HTTP_PROXY=",
                                        "HTTPS_PROXY=", "NO_PROXY=", "ALL_PROXY=", "DEBIAN_FRONTEND=",
                                        "SSL_CERT_FILE=", "NODE_EXTRA_CA_CERTS="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static void pair(struct text *t, const char *entry, bool *first) {
    const char *equals = strchr(entry, '=');
    if (!equals || equals == entry) return;
    if (!*first) text_add(t, ",", 1);
    *first = false;
    text_quote(t, entry, (size_t)(equals - entry));
    text_add(t, ":", 1);
    text_quote(t, equals + 1, strlen(equals + 1));
}

static void words(struct text *t, char **argv) {
    for (char **a = argv; *a; a++) {
        if (a > argv) text_add(t, ",", 1);
        text_quote(t, *a, strlen(*a));
    }
}

static void command_words(struct text *t, const struct options *o) {
    const char *shell = getenv("SHELL");
    if (!shell || shell[0] != '/') shell = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
    if (!o->login && !o->shell) {
        words(t, o->command);
        return;
    }
    text_quote(t, shell, strlen(shell));
    if (o->login) text_fmt(t, ",\"-l\"");
    if (!o->command[0]) return;
    struct text line = {0};
    for (char **a = o->command; *a; a++) text_fmt(&line, "%s%s", a > o->command ? " " : "", *a);
    text_fmt(t, ",\"-c\",");
    text_quote(t, line.data, line.len);
    text_free(&line);
}

static struct text request(const struct options *o, const bool tty[3], const struct winsize *size) {
    struct text t = {0};
    bool first = true;
    char cwd[PATH_BYTES_MAX + 1];
    bool isRoot = !o->user || strcmp(o->user, "root") == 0;
    if (!getcwd(cwd, sizeof cwd)) strcpy(cwd, "/");
    text_fmt(&t, "{\"op\":\"sudo\",\"user\":");
    text_quote(&t, o->user ? o->user : "root", strlen(o->user ? o->user : "root"));
    text_fmt(&t, ",\"argv\":[");
    command_words(&t, o);
    text_fmt(&t, "],\"cwd\":");
    if (o->login) strcpy(cwd, isRoot ? "/root" : "/");
    text_quote(&t, cwd, strlen(cwd));
    text_fmt(&t, ",\"env\":{");
    for (char **a = o->assignments; a < o->command; a++) pair(&t, *a, &first); // first wins, so these come first
    for (char **e = environ; *e; e++)
        if (is_kept(*e) || (o->keepEnv && strncmp(*e, "HOME=", 5) && strncmp(*e, "USER=", 5) && strncmp(*e, "LOGNAME=", 8)))
            pair(&t, *e, &first);
    text_fmt(&t, "},\"tty\":[%s,%s,%s],\"cols\":%u,\"rows\":%u}", tty[0] ? "true" : "false", tty[1] ? "true" : "false",
             tty[2] ? "true" : "false", size->ws_col, size->ws_row);
    return t;
}

static bool send_all(int fd, const void *bytes, size_t n) {
    for (const char *at = bytes; n > 0;) {
        ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        at += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool send_request(int fd, const struct text *t) {
    static const int stdio[3] = {0, 1, 2};
    uint8_t head[5];
    union {
        char space[CMSG_SPACE(sizeof stdio)];
        struct cmsghdr align;
    } control = {{0}};
    frame_header(head, 0, t->len - 1);
    struct iovec iov = {head, FRAME_HEADER};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof stdio);
    memcpy(CMSG_DATA(h), stdio, sizeof stdio);
    return sendmsg(fd, &m, MSG_NOSIGNAL) == FRAME_HEADER && send_all(fd, t->data, t->len);
}

// --- while it runs ---

// The inner terminal already does what a terminal does; the outer one must not do it a second time.
static void raw_mode(struct relay *r) {
    struct termios raw;
    if (r->tty < 0 || tcgetattr(r->tty, &r->saved) != 0) {
        r->tty = -1;
        return;
    }
    raw = r->saved;
    if (r->input) cfmakeraw(&raw);
    else raw.c_oflag &= ~(tcflag_t)OPOST; // its keys are not ours: Ctrl-C still means what it meant
    tcsetattr(r->tty, TCSADRAIN, &raw);
}

static void restore(struct relay *r) {
    if (r->master >= 0 && r->tty >= 0) tcsetattr(r->tty, TCSADRAIN, &r->saved);
}

static void copy_size(struct relay *r) {
    struct winsize size;
    if (r->master >= 0 && ioctl(r->tty, TIOCGWINSZ, &size) == 0)
        ioctl(r->master, TIOCSWINSZ, &size);
}

static bool copy(int from, int to) {
    char piece[4096];
    ssize_t n = read(from, piece, sizeof piece);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    for (ssize_t at = 0; at < n;) {
        ssize_t put = write(to, piece + at, (size_t)(n - at));
        if (put > 0) at += put;
        else if (put < 0 && errno == EAGAIN) poll(&(struct pollfd){to, POLLOUT, 0}, 1, -1);
        else if (put < 0 && errno != EINTR) return false;
    }
    return n > 0;
}

// Bytes of the socket, and the terminal's master that comes with the first frame.
static ssize_t receive(struct relay *r) {
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {r->in + r->have, sizeof r->in - r->have};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
    ssize_t n = recvmsg(r->socket, &m, MSG_CMSG_CLOEXEC);
    struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
        memcpy(&r->master, CMSG_DATA(h), sizeof(int));
        raw_mode(r);
        copy_size(r);
    }
    if (n > 0) r->have += (size_t)n;
    return n;
}

// The exit code once it is known, -1 before.
static int take_frames(struct relay *r) {
    struct frame f;
    while (frame_read(r->in, r->have, &f) == FRAME_READY) {
        struct request q = {0};
        struct json ev;
        int code = -1;
        if (json_check((const char *)f.data, f.len, &q.root) && json_get(q.root, "ev", &ev)) {
            if (json_equals(ev, "exit")) code = (int)request_int(&q, "code", 1, 0, 255);
            if (json_equals(ev, "fault")) {
                restore(r);
                char *why = request_string(&q, "message");
                code = die(why ? why : "refused");
                if (request_int(&q, "errno", 0, 0, 4096) == ENOENT) code = 127;
            }
        }
        memmove(r->in, r->in + f.used, r->have - f.used);
        r->have -= f.used;
        if (code >= 0) return code;
    }
    return -1;
}

static void pass_signal(struct relay *r, int number) {
    char body[64];
    uint8_t head[5];
    if (number == SIGWINCH) {
        copy_size(r);
        return;
    }
    int n = snprintf(body, sizeof body, "{\"op\":\"signal\",\"name\":\"%s\"}", signal_name(number));
    frame_header(head, 0, (size_t)n - 1);
    if (send_all(r->socket, head, FRAME_HEADER)) send_all(r->socket, body, (size_t)n);
}

static int serve(struct relay *r, int signals) {
    for (;;) {
        struct pollfd p[4] = {{r->socket, POLLIN, 0}, {signals, POLLIN, 0},
                              {r->master, POLLIN, 0}, {r->master >= 0 && r->input ? 0 : -1, POLLIN, 0}};
        if (poll(p, 4, -1) < 0 && errno != EINTR) return 1;
        struct signalfd_siginfo info;
        if (p[1].revents && read(signals, &info, sizeof info) == (ssize_t)sizeof info) pass_signal(r, (int)info.ssi_signo);
        if (p[2].revents && !copy(r->master, r->out)) {
            restore(r);
            close(r->master);
            r->master = -1;
        }
        if (p[3].revents && r->master >= 0) r->input = copy(0, r->master);
        if (!p[0].revents) continue;
        ssize_t n = receive(r);
        int code = take_frames(r);
        if (code >= 0) {
            while (r->master >= 0 && poll(&(struct pollfd){r->master, POLLIN, 0}, 1, 0) > 0 && copy(r->master, r->out)) {}
            restore(r);
            return code;
        }
        if (n == 0 || (n < 0 && errno != EINTR)) {
            restore(r);
            return die("PID 1 has gone");
        }
    }
}

static int open_socket(void) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const char *path = getenv("WARREN_SUDO_SOCKET"); // for tests; whoever sets it only fools themselves
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path ? path : config.sudoSocket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0) return fd;
    return -1;
}

int sudo_shim(int argc, char **argv) {
    static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH};
    struct options o = {0};
    if (!parse(argc, argv, &o)) return usage();
    if (o.forget && !o.command[0]) return 0;
    int fd = open_socket();
    if (fd < 0) return die("root is not available in this sandbox (profile strict, or PID 1 does not answer)");
    if (o.validate) return 0;
    if (!o.command[0] && !o.login && !o.shell) return usage();

    const bool tty[3] = {isatty(0), isatty(1), isatty(2)};
    struct winsize size = {.ws_col = 80, .ws_row = 24};
    for (int i = 0; i < 3; i++)
        if (tty[i]) ioctl(i, TIOCGWINSZ, &size);
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) sigaddset(&set, passed[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct text t = request(&o, tty, &size);
    if (t.failed || t.len > JSON_FRAME_MAX) return die("arguments and environment are too long");
    if (!send_request(fd, &t)) return die("PID 1 does not answer");
    text_free(&t);
    struct relay r = {.socket = fd, .master = -1, .out = tty[1] ? 1 : 2,
                      .tty = tty[0] ? 0 : tty[1] ? 1 : tty[2] ? 2 : -1, .input = tty[0]};
    return serve(&r, signalfd(-1, &set, SFD_CLOEXEC));
}
