#ifndef WARREN_CONFINE_TREE_H
#define WARREN_CONFINE_TREE_H

/* Sends a signal to every descendant of this process; how many there were. */
int signal_descendants(int number);

#endif
