/* The ids of a user namespace that an ordinary user makes: their own, and those given to them in /etc/subuid and /etc/subgid. */
#ifndef WARREN_LAUNCH_IDS_H
#define WARREN_LAUNCH_IDS_H

#include <stdbool.h>
#include <sys/types.h>

/* Where they are inside. */
struct ids_places {
	unsigned own, given;
};

/* given: "UID:GID:COUNT", the first of each and how many. Ends the process when they cannot be mapped. */
void ids_map(pid_t pid, const char *given, struct ids_places places);
/* Only the user's own id, as 0. */
void ids_map_own(pid_t pid);
/* In a namespace whose ids are mapped. False: errno says why. */
bool ids_become_root(void);

#endif
