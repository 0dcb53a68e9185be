// Pseudo-terminals.
#ifndef PTY_H
#define PTY_H

#include <stdbool.h>

// Both ends, close-on-exec; the master does not block. false with errno.
bool pty_open(int *master, int *slave, int cols, int rows);
bool pty_resize(int master, int cols, int rows);
char pty_eof(int master); // the character that means end of file there

#endif
