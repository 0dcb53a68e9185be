// Signal names as they are on the wire.
#ifndef SIGNALS_H
#define SIGNALS_H

const char *signal_name(int number); // never NULL
int signal_number(const char *name); // 0: unknown

#endif
