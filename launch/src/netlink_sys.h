/* Netlink as the kernel defines it, for musl, which has no linux/ headers. Values are those of linux/netlink.h, rtnetlink.h, if_link.h,
 * veth.h and netfilter/nf_tables.h. */
#ifndef WARREN_LAUNCH_NETLINK_SYS_H
#define WARREN_LAUNCH_NETLINK_SYS_H

#include <stdint.h>

enum { W_NETLINK_ROUTE = 0, W_NETLINK_NETFILTER = 12 };
enum { W_REQUEST = 0x01, W_ACK = 0x04, W_EXCL = 0x200, W_CREATE = 0x400 };
enum { W_ERROR = 2, W_NESTED = 0x8000 };

struct w_nl_address {
	uint16_t family, zero;
	uint32_t port, groups;
};

struct w_nl_head {
	uint32_t length;
	uint16_t type, flags;
	uint32_t sequence, port;
};

struct w_nl_error {
	int32_t error; /* negative; 0 is an acknowledgement */
	struct w_nl_head asked;
};

struct w_nl_attribute {
	uint16_t length, type;
};

/* Devices, addresses, routes. */
enum { W_NEWLINK = 16, W_DELLINK = 17, W_SETLINK = 19, W_NEWADDR = 20, W_NEWROUTE = 24 };
enum { W_IFLA_IFNAME = 3, W_IFLA_LINKINFO = 18, W_IFLA_AF_SPEC = 26, W_IFLA_NET_NS_FD = 28 };
enum { W_INFO_KIND = 1, W_INFO_DATA = 2, W_VETH_PEER = 1, W_INET6_ADDR_GEN_MODE = 8, W_ADDR_GEN_MODE_NONE = 1 };
enum { W_IFA_ADDRESS = 1, W_IFA_LOCAL = 2, W_RTA_OIF = 4, W_RTA_GATEWAY = 5 };
enum { W_TABLE_MAIN = 254, W_PROTOCOL_BOOT = 3, W_UNICAST = 1 };

struct w_link {
	uint8_t family, pad;
	uint16_t type;
	int32_t index;
	uint32_t flags, change;
};

struct w_address {
	uint8_t family, prefix, flags, scope;
	uint32_t index;
};

struct w_route {
	uint8_t family, to_length, from_length, tos, table, protocol, scope, type;
	uint32_t flags;
};

/* Elements of a set of nftables, between the two ends of a batch. */
enum { W_BATCH_BEGIN = 16, W_BATCH_END = 17, W_NFTABLES = 10, W_NEWSETELEM = 12, W_DELSETELEM = 14, W_FAMILY_INET = 1 };
enum { W_LIST_TABLE = 1, W_LIST_SET = 2, W_LIST_ELEMENTS = 3, W_LIST_ELEMENT = 1, W_ELEMENT_KEY = 1, W_DATA_VALUE = 1 };

struct w_nf {
	uint8_t family, version;
	uint16_t resource; /* big-endian */
};

#endif
