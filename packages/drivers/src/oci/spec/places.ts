export type Place = `/${string}`

/** init, read-only. Beside it init makes the socket of `sudo`. */
export const initAt: Place = "/run/warren/init"

/** init again, under the name by which people ask for root. Before /usr/bin in every PATH, so an image's own sudo (which
 * no-new-privs makes useless) is not found. */
export const sudoAt: Place = "/usr/local/bin/sudo"

/** The folder with the egress proxy's socket, read-only. */
export const egressAt: Place = "/run/warren/egress"

export const homeAt: Place = "/home/user"

/** Small files of our own over those of the image. */
export const etcAt = { resolv: "/etc/resolv.conf", hosts: "/etc/hosts", hostname: "/etc/hostname" } as const
