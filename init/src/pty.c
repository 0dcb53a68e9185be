#include "pty.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "launch.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

bool pty_resize(int master, int cols, int rows) {
    struct winsize size = {.ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows};
    return ioctl(master, TIOCSWINSZ, &size) == 0;
}

char pty_eof(int master) {
    struct termios t;
    return tcgetattr(master, &t) == 0 ? (char)t.c_cc[VEOF] : 4;
}

bool pty_open(int *master, int *slave, int cols, int rows) {
    int unlock = 0;
    *slave = -1;
    *master = fd_high(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    if (*master < 0) return false;
    // The peer comes from the master itself: a name under /dev/pts could be somebody else's by then.
    if (ioctl(*master, TIOCSPTLCK, &unlock) == 0)
        *slave = fd_high(ioctl(*master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (*slave >= 0 && pty_resize(*master, cols, rows)) return true;
    int error = errno;
    close(*master);
    if (*slave >= 0) close(*slave);
    errno = error;
    return false;
}
