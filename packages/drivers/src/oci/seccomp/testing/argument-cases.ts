import { errnos } from "../bpf.ts"
import { btrfs } from "../values.ts"

const { EPERM, EAFNOSUPPORT } = errnos
const EBADF = 9
const EFAULT = 14

/** What arguments decide: calls, and the errno of each in a live kernel. All but these two have passed the filter. */
export const argumentCases: readonly (readonly [what: string, name: string, args: readonly number[], errno: number])[] =
  [
    ["clone with a new user namespace", "clone", [0x1000_0011], EPERM],
    ["clone with a new mount namespace", "clone", [0x0002_0011], EPERM],
    ["clone with a new pid namespace", "clone", [0x2000_0011], EPERM],
    ["an INET stream", "socket", [2, 1, 0], 0],
    ["an INET6 datagram", "socket", [10, 2, 17], 0],
    ["a UNIX socket", "socket", [1, 1, 0], 0],
    ["NETLINK_ROUTE", "socket", [16, 3, 0], 0],
    ["NETLINK_AUDIT", "socket", [16, 3, 9], EAFNOSUPPORT],
    ["NETLINK_NETFILTER", "socket", [16, 3, 12], EAFNOSUPPORT],
    ["AF_VSOCK", "socket", [40, 1, 0], EAFNOSUPPORT],
    ["AF_ALG", "socket", [38, 5, 0], EAFNOSUPPORT],
    ["AF_PACKET", "socket", [17, 3, 0], EAFNOSUPPORT],
    ["AF_XDP", "socket", [44, 3, 0], EAFNOSUPPORT],
    ["AF_INET with high bits set", "socket", [2 + 2 ** 32, 1, 0], 0],
    ["AF_VSOCK with high bits set", "socket", [40 + 2 ** 32, 1, 0], EAFNOSUPPORT],
    ["SCTP", "socket", [2, 1, 132], EAFNOSUPPORT],
    ["MPTCP", "socket", [2, 1, 262], EAFNOSUPPORT],
    ["a TIPC pair", "socketpair", [30, 1, 0], EPERM],
    ["TIOCSTI", "ioctl", [0, 0x5412], EPERM],
    ["TIOCSTI with high bits set", "ioctl", [0, 0x5412 + 2 ** 32], EPERM],
    ["TIOCLINUX", "ioctl", [0, 0x541c], EPERM],
    ["a btrfs subvolume", "ioctl", [0, btrfs.subvolCreate], EPERM],
    ["a btrfs snapshot", "ioctl", [0, btrfs.snapCreateV2], EPERM],
    ["the size of a window", "ioctl", [-1, 0x5413], EBADF],
    ["the question for the personality", "personality", [0xffff_ffff], 0],
    ["no randomised addresses", "personality", [0x4_0000], 0],
    ["READ_IMPLIES_EXEC", "personality", [0x40_0000], EPERM],
    ["a whiteout", "mknodat", [-100, 0, 0x2000, 0], EPERM],
    ["a block device", "mknodat", [-100, 0, 0x6000, 0], EPERM],
    ["a fifo (of no name)", "mknodat", [-100, 0, 0x1000, 0], EFAULT],
    ["a rename that leaves a whiteout", "renameat2", [-100, 0, -100, 0, 4], EPERM],
    ["an exchange (of no names)", "renameat2", [-100, 0, -100, 0, 2], EFAULT],
    ["to be traced", "ptrace", [0, 0, 0, 0], 0],
  ]
