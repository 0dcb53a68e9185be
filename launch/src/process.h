/* Other processes: told apart by pid and start time, found by user namespace. */
#ifndef WARREN_LAUNCH_PROCESS_H
#define WARREN_LAUNCH_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TICKS_SIZE 24

/* Start time (in decimal) and parent. A zombie counts as gone. */
bool process_stat(pid_t pid, char ticks[TICKS_SIZE], pid_t *parent);
/* A pidfd of exactly that process, or −1; ESRCH or EINVAL when it is gone (or the pid is somebody else's by now). */
int process_open(pid_t pid, const char *ticks);
/* userns is the namespace's inode. */
bool process_in_namespace(pid_t pid, uint64_t userns);
/* Kills every process in that user namespace, wherever it is. Returns how many were seen. */
int kill_namespace(uint64_t userns);

#endif
