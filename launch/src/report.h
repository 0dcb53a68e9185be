/* What a forked child tells the launcher, one message on a SOCK_SEQPACKET pair. */
#ifndef WARREN_LAUNCH_REPORT_H
#define WARREN_LAUNCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>

struct report {
	bool failed;
	int error;
	char step[16];
	char message[200];
	/* of a start */
	bool idmap_lower, idmap_upper;
	uint64_t userns;      /* inode of the user namespace: how whatever a failed start left is found */
	uint32_t step_us[6];  /* cgroups+socket, userns, clones, enter, overlay, binds */
	/* of an errand */
	char answer[80];      /* members of the ok object, in JSON */
};

/* The child's own end. */
void report_open(int fd);
/* pass: a descriptor that goes along, or −1. False: it could not be sent. */
bool report_send(const struct report *r, int pass);
/* Sends a failure with errno, and exits. subject may be NULL. */
_Noreturn void fail(const char *step, const char *message, const char *subject);
_Noreturn void fail_with(int error, const char *step, const char *message, const char *subject);

#endif
