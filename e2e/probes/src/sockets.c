// Socket families and protocols. A type that does not exist: a kernel that is reached says EINVAL, and loads no module.
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "probe.h"

enum { NO_TYPE = 15 };
#define HIGH (1L << 32)

static int family(const struct attempt *a) { return reached(syscall(SYS_socket, a->number, NO_TYPE, a->args[0])); }
static int pair(const struct attempt *a) {
    int ends[2];
    return reached(syscall(SYS_socketpair, a->number, NO_TYPE, 0, ends));
}
static int real(const struct attempt *a) {
    long fd = syscall(SYS_socket, a->number, a->args[0], a->args[1]);
    if (fd < 0 && (errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT)) return ABSENT;
    return carried_out(fd);
}

#define FAMILY(name, n) {.id = "socket." name, .make = family, .number = n}
#define PROTOCOL(name, n, p) {.id = "socket." name, .make = family, .number = n, .args = {p}}

static const struct attempt table[] = {
    FAMILY("ax25", 3), FAMILY("ipx", 4), FAMILY("appletalk", 5), FAMILY("netrom", 6), FAMILY("bridge", 7),
    FAMILY("atmpvc", 8), FAMILY("x25", 9), FAMILY("rose", 11), FAMILY("decnet", 12), FAMILY("netbeui", 13),
    FAMILY("security", 14), FAMILY("key", 15), FAMILY("packet", 17), FAMILY("ash", 18), FAMILY("econet", 19),
    FAMILY("atmsvc", 20), FAMILY("rds", 21), FAMILY("sna", 22), FAMILY("irda", 23), FAMILY("pppox", 24),
    FAMILY("wanpipe", 25), FAMILY("llc", 26), FAMILY("ib", 27), FAMILY("mpls", 28), FAMILY("can", 29),
    FAMILY("tipc", 30), FAMILY("bluetooth", 31), FAMILY("iucv", 32), FAMILY("rxrpc", 33), FAMILY("isdn", 34),
    FAMILY("phonet", 35), FAMILY("ieee802154", 36), FAMILY("caif", 37), FAMILY("alg", 38), FAMILY("nfc", 39),
    FAMILY("vsock", 40), FAMILY("kcm", 41), FAMILY("qipcrtr", 42), FAMILY("smc", 43), FAMILY("xdp", 44),
    FAMILY("mctp", 45), FAMILY("vsock_high_bits", HIGH | 40), FAMILY("packet_high_bits", HIGH | 17),
    PROTOCOL("inet_sctp", 2, 132), PROTOCOL("inet_dccp", 2, 33), PROTOCOL("inet_udplite", 2, 136),
    PROTOCOL("inet_mptcp", 2, 262), PROTOCOL("inet_raw", 2, 255), PROTOCOL("inet6_sctp", 10, 132),
    PROTOCOL("inet6_mptcp", 10, 262), PROTOCOL("inet_sctp_high_bits", 2, HIGH | 132),
    PROTOCOL("netlink_sock_diag", 16, 4), PROTOCOL("netlink_netfilter", 16, 12), PROTOCOL("netlink_audit", 16, 9),
    PROTOCOL("netlink_xfrm", 16, 6), PROTOCOL("netlink_uevent", 16, 15), PROTOCOL("netlink_generic", 16, 16),
    PROTOCOL("netlink_crypto", 16, 21), PROTOCOL("netlink_connector", 16, 11), PROTOCOL("netlink_selinux", 16, 7),
    {.id = "socket.pair_inet", .make = pair, .number = 2},
    {.id = "socket.pair_tipc", .make = pair, .number = 30},
    {.id = "socket.real_raw_icmp", .make = real, .number = 2, .args = {3, 1}},
    {.id = "socket.real_raw6", .make = real, .number = 10, .args = {3, 58}},
    {.id = "socket.real_packet", .make = real, .number = 17, .args = {3, 0}},
    {.id = "socket.real_vsock", .make = real, .number = 40, .args = {1, 0}},
    {.id = "socket.real_alg", .make = real, .number = 38, .args = {5, 0}},
    {.id = "socket.real_unix", .make = real, .number = 1, .args = {1, 0}},
    {.id = "socket.real_inet", .make = real, .number = 2, .args = {1, 0}},
    {.id = "socket.real_inet6", .make = real, .number = 10, .args = {1, 0}},
    {.id = "socket.real_netlink_route", .make = real, .number = 16, .args = {3, 0}},
};
GROUP(sockets, table);
