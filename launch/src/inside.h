/* warren-launch --inside UID:GID:COUNT PROGRAM [ARG …]: how an ordinary user runs a program that may give files away. In a user namespace of its
 * own it is root over COUNT of the ids given to the user, 0 being the first of them: owners of files are for it what they are in a sandbox with
 * this range. The user's own id comes after them, so that what belongs to the user can be reached. No network, and no way to get more rights. */
#ifndef WARREN_LAUNCH_INSIDE_H
#define WARREN_LAUNCH_INSIDE_H

/* Becomes the program, in this very process: whoever started us has its pid, its streams and its end. */
_Noreturn void inside_run(const char *ids, char **arguments);

#endif
