import { BlockList, isIPv6 } from "node:net"
import { networkInterfaces } from "node:os"

/** What is not the public Internet (IANA's special-purpose registries), and who lives there. */
const special: readonly (readonly [range: string, name: string])[] = [
  ["0.0.0.0/8", "this network"],
  ["10.0.0.0/8", "private"],
  ["100.64.0.0/10", "carrier-grade NAT"],
  ["127.0.0.0/8", "loopback"],
  // The cloud's door to the machine's keys; in public space, so no other range has it.
  ["168.63.129.16/32", "metadata"],
  ["169.254.169.254/32", "metadata"],
  ["169.254.0.0/16", "link-local"],
  ["172.16.0.0/12", "private"],
  ["192.0.0.0/24", "protocol assignments"],
  ["192.0.2.0/24", "documentation"],
  ["192.31.196.0/24", "AS112"],
  ["192.52.193.0/24", "multicast relay"],
  ["192.88.99.0/24", "6to4 relay"],
  ["192.168.0.0/16", "private"],
  ["192.175.48.0/24", "AS112"],
  ["198.18.0.0/15", "benchmarking"],
  ["198.51.100.0/24", "documentation"],
  ["203.0.113.0/24", "documentation"],
  ["224.0.0.0/4", "multicast"],
  ["240.0.0.0/4", "reserved"],
  ["::/128", "this network"],
  ["::1/128", "loopback"],
  ["::ffff:0:0/96", "IPv4 in IPv6"],
  ["64:ff9b::/96", "translated IPv4"],
  ["64:ff9b:1::/48", "translated IPv4"],
  ["2001::/32", "Teredo"],
  ["2001::/23", "protocol assignments"],
  ["2001:db8::/32", "documentation"],
  ["2002::/16", "6to4"],
  ["3fff::/20", "documentation"],
  ["fd00:ec2::254/128", "metadata"],
  ["fc00::/7", "private"],
  ["fe80::/10", "link-local"],
  ["ff00::/8", "multicast"],
]

// Kept apart by family: to Node's list, ::ffff:0:0/96 is all of IPv4.
const ranges = special.map(([range, name]) => ({ name, isIPv6: range.includes(":"), list: listOf(range) }))
/** Everything public in IPv6 lies in here, so what the table above forgets is refused all the same. */
const publicIPv6 = listOf("2000::/3")

/** Why an address is not one of the public Internet's; undefined when it is. The text is an address: `isIP` holds. */
export function whyNotPublic(address: string): string | undefined {
  const family = isIPv6(address) ? "ipv6" : "ipv4"
  const range = ranges.find((one) => one.isIPv6 === isIPv6(address) && one.list.check(address, family))
  if (range) return range.name
  if (family === "ipv6" && !publicIPv6.check(address, family)) return "not public"
  // Read each time: addresses come and go while a runner lives.
  return ownAddresses().check(address, family) ? "this machine" : undefined
}

function ownAddresses(): BlockList {
  const list = new BlockList()
  for (const one of Object.values(networkInterfaces()).flat()) {
    if (one) list.addAddress(one.address, one.family === "IPv6" ? "ipv6" : "ipv4")
  }
  return list
}

function listOf(range: string): BlockList {
  const [address = "", bits = ""] = range.split("/")
  const list = new BlockList()
  list.addSubnet(address, Number(bits), isIPv6(address) ? "ipv6" : "ipv4")
  return list
}
