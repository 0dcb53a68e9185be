import { anyDevice, ourRange } from "./line.ts"

/** Where no sandbox may go: not public, or (our own range) other sandboxes. Addresses of the host itself never come this far. */
const refused = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "224.0.0.0/3",
]

/** Connections one sandbox may have at a time: the kernel's table is everybody's. */
export const connectionsMax = 4096

interface RuleOptions {
  /** The name of the table. */
  readonly table: string
  readonly mark: string
  /** The machine passes packets on only because of us: nobody else may make a router of it. */
  readonly onlyOurs: boolean
}

/** Replaces the whole table at once. Names of devices stand in for sandboxes, so none of them needs rules of its own. */
export function rules({ table, mark, onlyOurs }: RuleOptions): string {
  const ours = `"${anyDevice}${mark}*"`
  return `table inet ${table}
delete table inet ${table}
table inet ${table} {
  set refused { type ipv4_addr; flags interval; elements = { ${refused.join(", ")} }; }
  set resolvers { type ifname . ipv4_addr; }
  set busy { type ifname; size 65535; flags dynamic; }
  chain to_host {
    type filter hook input priority filter - 10; policy accept;
    iifname ${ours} reject with icmpx admin-prohibited
  }
  chain through {
    type filter hook forward priority filter - 10; policy accept;
    iifname ${ours} jump out
    oifname ${ours} ct state established,related accept
    oifname ${ours} drop
    ${onlyOurs ? `iifname != "${anyDevice}*" oifname != "${anyDevice}*" drop` : ""}
  }
  chain out {
    meta nfproto != ipv4 drop
    fib saddr . iif oif missing drop
    ct state established,related accept
    meta l4proto != { tcp, udp } reject with icmp admin-prohibited
    iifname . ip daddr @resolvers meta l4proto { tcp, udp } th dport 53 accept
    ip daddr @refused reject with icmp admin-prohibited
    ct state new add @busy { iifname ct count over ${connectionsMax} } reject with icmp admin-prohibited
    accept
  }
  chain outward {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${ourRange} oifname != "${anyDevice}*" masquerade
  }
}
`
}
