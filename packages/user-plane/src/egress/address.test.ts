import { networkInterfaces } from "node:os"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { whyNotPublic } from "./address.ts"

describe("addresses", () => {
  test.each([
    ["0.0.0.0", "this network"],
    ["0.1.2.3", "this network"],
    ["10.255.0.1", "private"],
    ["100.64.0.1", "carrier-grade NAT"],
    ["100.100.100.200", "carrier-grade NAT"],
    ["127.0.0.1", "loopback"],
    ["127.255.255.254", "loopback"],
    ["168.63.129.16", "metadata"],
    ["169.254.169.254", "metadata"],
    ["169.254.170.2", "link-local"],
    ["172.16.0.1", "private"],
    ["172.31.255.255", "private"],
    ["192.0.0.192", "protocol assignments"],
    ["192.0.2.1", "documentation"],
    ["192.31.196.1", "AS112"],
    ["192.52.193.1", "multicast relay"],
    ["192.88.99.1", "6to4 relay"],
    ["192.168.1.1", "private"],
    ["192.175.48.1", "AS112"],
    ["198.18.0.1", "benchmarking"],
    ["198.19.255.255", "benchmarking"],
    ["198.51.100.1", "documentation"],
    ["203.0.113.1", "documentation"],
    ["224.0.0.1", "multicast"],
    ["239.255.255.250", "multicast"],
    ["240.0.0.1", "reserved"],
    ["255.255.255.255", "reserved"],
    ["::", "this network"],
    ["::1", "loopback"],
    ["0:0:0:0:0:0:0:1", "loopback"],
    ["::7f00:1", "not public"],
    ["::ffff:127.0.0.1", "IPv4 in IPv6"],
    ["::ffff:8.8.8.8", "IPv4 in IPv6"],
    ["::ffff:0:127.0.0.1", "not public"],
    ["64:ff9b::7f00:1", "translated IPv4"],
    ["64:ff9b::8.8.8.8", "translated IPv4"],
    ["64:ff9b:1::1", "translated IPv4"],
    ["100::1", "not public"],
    ["2001::1", "Teredo"],
    ["2001:20::1", "protocol assignments"],
    ["2001:db8::1", "documentation"],
    ["2002:7f00:1::", "6to4"],
    ["2002:a9fe:a9fe::1", "6to4"],
    ["3fff::1", "documentation"],
    ["5f00::1", "not public"],
    ["fc00::1", "private"],
    ["fd00:ec2::254", "metadata"],
    ["fdff::1", "private"],
    ["fe80::1", "link-local"],
    ["fec0::1", "not public"],
    ["ff02::1", "multicast"],
  ])("%s is refused: %s", (address, why) => expect(whyNotPublic(address)).toBe(why))

  test.each([
    "8.8.8.8",
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.0.1",
    "172.32.0.1",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450:4001::200e",
  ])("%s is public", (address) => expect(whyNotPublic(address)).toBeUndefined())

  test("this machine's own are refused, whatever they are", () => {
    for (const one of Object.values(networkInterfaces()).flat()) if (one) expect(whyNotPublic(one.address)).toBeTruthy()
  })

  test("an IPv4 address stays refused in every dress of IPv6", () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number)
        const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
        for (const dressed of [
          `::ffff:${hex}`,
          `64:ff9b::${hex}`,
          `2002:${hex}::1`,
          `::${hex}`,
          `2001::${hex}`,
          `64:ff9b:1::${hex}`,
        ]) {
          expect(whyNotPublic(dressed), dressed).toBeTruthy()
        }
      }),
    )
  })
})
