/** What init needs to start commands as others, and what root inside may have: what dpkg, apt, useradd and su need. */
const numbers = {
  CAP_CHOWN: 0,
  CAP_DAC_OVERRIDE: 1,
  CAP_FOWNER: 3,
  CAP_FSETID: 4,
  CAP_KILL: 5,
  CAP_SETGID: 6,
  CAP_SETUID: 7,
  CAP_SETPCAP: 8,
  CAP_NET_BIND_SERVICE: 10,
  CAP_SYS_CHROOT: 18,
  CAP_SETFCAP: 31,
} as const

export const initCapabilities: readonly string[] = Object.keys(numbers)

/** The same as the kernel's bit set. */
export const initCapabilityMask = Object.values(numbers).reduce((mask, number) => mask | (1n << BigInt(number)), 0n)
