/* Asking the kernel over netlink: messages built in one buffer, each answered before the next is sent. */
#ifndef WARREN_LAUNCH_NETLINK_H
#define WARREN_LAUNCH_NETLINK_H

#include <stddef.h>
#include <stdint.h>

struct nl {
	size_t used, last; /* last: where the message that is being built begins */
	union { char bytes[2048]; uint32_t align; };
};

/* In the network namespace the process is in. −1: errno says why. */
int nl_open(int protocol);
/* Begins a message with its fixed head; flags beside REQUEST. */
void nl_begin(struct nl *m, uint16_t type, uint16_t flags, const void *head, size_t size);
void nl_put(struct nl *m, uint16_t type, const void *data, size_t size);
void nl_text(struct nl *m, uint16_t type, const char *text);
void nl_number(struct nl *m, uint16_t type, uint32_t value);
/* What is put until nl_close is inside. Returns what nl_close wants. */
size_t nl_nest(struct nl *m, uint16_t type);
void nl_raw(struct nl *m, const void *data, size_t size);
void nl_close(struct nl *m, size_t nest);
/* Sends everything that was built, and takes one answer for every message with NLM_F_ACK. −1: errno is the kernel's. Empties the buffer. */
int nl_ask(int fd, struct nl *m);

#endif
