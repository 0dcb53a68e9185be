#define _GNU_SOURCE
#include "network.h"
#include "netlink.h"
#include "netlink_sys.h"
#include "process.h"
#include "report.h"
#include "sys.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define PREFIX 30
#define INSIDE "eth0"
#define SET "resolvers"
#define NEW (W_ACK | W_CREATE | W_EXCL)

/* Small letters, digits and _, beginning with ours: nobody else's device or table can be named. */
static const char *want_name(struct request *r, const char *name, const char *ours, size_t longest)
{
	const struct json *v = want(r, name);
	const char *letters = "abcdefghijklmnopqrstuvwxyz0123456789_";
	if (!v || v->type != JSON_STRING || v->length > longest || strspn(v->text, letters) != v->length || strncmp(v->text, ours, strlen(ours)) != 0)
		return bad(r, name, "is not one of ours"), "";
	return v->text;
}

static uint32_t address_of(struct request *r, const char *name, const struct json *v)
{
	uint32_t address = 0;
	if (!v || v->type != JSON_STRING || inet_pton(AF_INET, v->text, &address) != 1)
		bad(r, name, "must be an IPv4 address");
	return address;
}

void network_parse(struct request *r, struct errand *e, bool connecting)
{
	struct line *l = &e->line;
	l->device = want_name(r, "device", "wrn", IFNAMSIZ - 1);
	l->table = want_name(r, "table", "warren_", 64);
	for (const struct json *v = want_list(r, "resolvers", 0, RESOLVERS_MAX); v && !r->bad; v = json_next(r->doc, v))
		l->resolvers[l->resolver_count++] = address_of(r, "resolvers", v);
	if (!connecting)
		return;
	l->pid = (pid_t)want_number(r, "pid", 2, INT32_MAX, -1);
	l->ticks = want_ticks(r);
	l->gateway = address_of(r, "gateway", want(r, "gateway"));
	l->address = address_of(r, "address", want(r, "address"));
}

/* The veth pair, its other end in that namespace from the beginning. */
static int add_pair(int fd, const char *device, int namespace)
{
	struct nl m = {0};
	struct w_link link = {.family = AF_UNSPEC};
	nl_begin(&m, W_NEWLINK, NEW, &link, sizeof link);
	nl_text(&m, W_IFLA_IFNAME, device);
	size_t info = nl_nest(&m, W_IFLA_LINKINFO);
	nl_text(&m, W_INFO_KIND, "veth");
	size_t data = nl_nest(&m, W_INFO_DATA), peer = nl_nest(&m, W_VETH_PEER);
	nl_raw(&m, &link, sizeof link);
	nl_text(&m, W_IFLA_IFNAME, INSIDE);
	nl_number(&m, W_IFLA_NET_NS_FD, (uint32_t)namespace);
	nl_close(&m, peer);
	nl_close(&m, data);
	nl_close(&m, info);
	return nl_ask(fd, &m);
}

/* No address of version 6 comes by itself: that must be said before it is up. */
static void put_quiet(struct nl *m, uint32_t index)
{
	struct w_link link = {.family = AF_UNSPEC, .index = (int)index};
	uint8_t none = W_ADDR_GEN_MODE_NONE;
	nl_begin(m, W_SETLINK, W_ACK, &link, sizeof link);
	size_t spec = nl_nest(m, W_IFLA_AF_SPEC), six = nl_nest(m, AF_INET6);
	nl_put(m, W_INET6_ADDR_GEN_MODE, &none, sizeof none);
	nl_close(m, six);
	nl_close(m, spec);
}

static void put_address(struct nl *m, uint32_t index, uint32_t address)
{
	struct w_address head = {.family = AF_INET, .prefix = PREFIX, .index = index};
	nl_begin(m, W_NEWADDR, NEW, &head, sizeof head);
	nl_put(m, W_IFA_LOCAL, &address, sizeof address);
	nl_put(m, W_IFA_ADDRESS, &address, sizeof address);
}

static void put_up(struct nl *m, uint32_t index)
{
	struct w_link link = {.family = AF_UNSPEC, .index = (int)index, .flags = IFF_UP, .change = IFF_UP};
	nl_begin(m, W_SETLINK, W_ACK, &link, sizeof link);
}

static void put_route(struct nl *m, uint32_t index, uint32_t gateway)
{
	struct w_route head = {.family = AF_INET, .table = W_TABLE_MAIN, .protocol = W_PROTOCOL_BOOT, .type = W_UNICAST};
	nl_begin(m, W_NEWROUTE, NEW, &head, sizeof head);
	nl_put(m, W_RTA_GATEWAY, &gateway, sizeof gateway);
	nl_number(m, W_RTA_OIF, index);
}

/* A kernel without version 6 knows nothing of its addresses either, and has nothing to keep quiet. */
static int set_up(int fd, const char *device, uint32_t address, uint32_t gateway)
{
	struct nl m = {0};
	uint32_t index = if_nametoindex(device);
	if (index == 0)
		return -1;
	put_quiet(&m, index);
	if (nl_ask(fd, &m) < 0 && errno != EAFNOSUPPORT)
		return -1;
	put_address(&m, index, address);
	put_up(&m, index);
	if (gateway)
		put_route(&m, index, gateway);
	return nl_ask(fd, &m);
}

static void put_batch(struct nl *m, uint16_t type)
{
	struct w_nf head = {.resource = htons(W_NFTABLES)};
	nl_begin(m, type, 0, &head, sizeof head);
}

/* Pairs of this device and each of its resolvers. */
static void put_elements(struct nl *m, const struct line *l, uint16_t verb, uint16_t flags)
{
	struct w_nf head = {.family = W_FAMILY_INET};
	nl_begin(m, (uint16_t)(W_NFTABLES << 8 | verb), flags, &head, sizeof head);
	nl_text(m, W_LIST_TABLE, l->table);
	nl_text(m, W_LIST_SET, SET);
	size_t all = nl_nest(m, W_LIST_ELEMENTS);
	for (int i = 0; i < l->resolver_count; i++) {
		char key[IFNAMSIZ + 4] = {0};
		snprintf(key, IFNAMSIZ, "%s", l->device);
		memcpy(key + IFNAMSIZ, &l->resolvers[i], 4);
		size_t one = nl_nest(m, W_LIST_ELEMENT), place = nl_nest(m, W_ELEMENT_KEY);
		nl_put(m, W_DATA_VALUE, key, sizeof key);
		nl_close(m, place);
		nl_close(m, one);
	}
	nl_close(m, all);
}

static int change_resolvers(const struct line *l, bool there)
{
	struct nl m = {0};
	if (l->resolver_count == 0)
		return 0;
	int fd = nl_open(W_NETLINK_NETFILTER);
	if (fd < 0)
		return -1;
	put_batch(&m, W_BATCH_BEGIN);
	/* Added first in any case: then there is something to delete, whatever was there. */
	put_elements(&m, l, W_NEWSETELEM, W_ACK | W_CREATE);
	if (!there)
		put_elements(&m, l, W_DELSETELEM, W_ACK);
	put_batch(&m, W_BATCH_END);
	int result = nl_ask(fd, &m), error = errno;
	close(fd);
	errno = error;
	return result;
}

/* Of exactly that process: looked at again once it cannot be another's. */
static int open_namespace(const struct line *l)
{
	char path[40];
	int process = process_open(l->pid, l->ticks);
	snprintf(path, sizeof path, "/proc/%d/ns/net", (int)l->pid);
	int fd = process < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	int again = fd < 0 ? -1 : process_open(l->pid, l->ticks);
	if (again < 0)
		fail("network", "the sandbox has ended", NULL);
	close(process);
	close(again);
	return fd;
}

void network_connect(const struct errand *e)
{
	const struct line *l = &e->line;
	int namespace = open_namespace(l), host = nl_open(W_NETLINK_ROUTE);
	if (host < 0)
		fail("network", "no netlink", NULL);
	if (change_resolvers(l, true) < 0)
		fail("network", "cannot allow its resolvers", l->table);
	if (add_pair(host, l->device, namespace) < 0)
		fail("network", "cannot make a pair of devices", l->device);
	if (set_up(host, l->device, l->gateway, 0) < 0)
		fail("network", "cannot set up", l->device);
	int inside = setns(namespace, CLONE_NEWNET) < 0 ? -1 : nl_open(W_NETLINK_ROUTE);
	if (inside < 0 || set_up(inside, INSIDE, l->address, l->gateway) < 0)
		fail("network", "cannot set up " INSIDE " of", l->device);
}

void network_disconnect(const struct errand *e)
{
	const struct line *l = &e->line;
	struct nl m = {0};
	struct w_link link = {.family = AF_UNSPEC};
	int host = nl_open(W_NETLINK_ROUTE);
	if (host < 0)
		fail("network", "no netlink", NULL);
	nl_begin(&m, W_DELLINK, W_ACK, &link, sizeof link);
	nl_text(&m, W_IFLA_IFNAME, l->device);
	if (nl_ask(host, &m) < 0 && errno != ENODEV)
		fail("network", "cannot remove", l->device);
	/* ENOENT: the whole table is gone. */
	if (change_resolvers(l, false) < 0 && errno != ENOENT)
		fail("network", "cannot forget the resolvers of", l->device);
}
