/** Kernel constants that the policy compares arguments with. */

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET; NEWTIME is no flag of clone. */
export const cloneNamespaces = 0x7e02_0000

export const socketFamily = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const

export const inet = { any: 0, icmp: 1, tcp: 6, udp: 17, icmp6: 58 } as const

/** Linux, Linux32 as `uname` tells it, each with UNAME26; without address randomisation (gdb, sanitizers); the question. */
export const personalities = [0, 0x8, 0x2_0000, 0x2_0008, 0x4_0000, 0xffff_ffff] as const

/** Both put words into the mouth of whoever sits at the terminal. */
export const terminal = { tiocsti: 0x5412, tioclinux: 0x541c } as const

/** A subvolume made by its owner is outside the disk limit of the one around it and missing from its snapshots. */
export const btrfs = {
  snapCreate: 0x5000_9401,
  subvolCreate: 0x5000_940e,
  snapCreateV2: 0x5000_9417,
  subvolCreateV2: 0x5000_9418,
  /** Makes a subvolume read-only: its owner could keep the host from emptying it. */
  subvolSetFlags: 0x4008_941a,
} as const

/** S_IFMT: none given (a file), S_IFIFO, S_IFREG, S_IFSOCK. */
export const fileType = { mask: 0xf000, values: [0, 0x1000, 0x8000, 0xc000] } as const

export const renameWhiteout = 0x4
