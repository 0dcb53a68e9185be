import { execFile } from "node:child_process"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import type { Probe } from "../driver.ts"
import { networkProbes } from "./network-probes.ts"
import { rangeUsers, type NetworkFacts } from "./network/network-facts.ts"

const ideal: NetworkFacts = {
  isRoot: true,
  hasNft: true,
  noRules: undefined,
  noDevices: undefined,
  canForward: true,
  rangeUsers: [],
  rejecting: [],
}
const unmet = (facts: Partial<NetworkFacts>): Probe[] =>
  networkProbes({ ...ideal, ...facts }).filter(({ isMet }) => !isMet)

/** Says it of a machine whose network is this test's own, after these commands. */
async function lookAfter(commands: string): Promise<Probe[]> {
  const tsx = resolve(import.meta.dirname, "../../../../node_modules/.bin/tsx")
  const look = join(import.meta.dirname, "network/testing/look.ts")
  const script = `set -e; ${commands}\nexec ${tsx} ${look}`
  const { stdout } = await promisify(execFile)("unshare", ["--net", "sh", "-c", script])
  return (JSON.parse(stdout) as Probe[]).filter(({ isMet }) => !isMet)
}

describe("the doctor's look at the network", () => {
  it("finds nothing missing for the proxy, and only root missing for an ordinary user", () => {
    expect(unmet({})).toEqual([])
    expect(unmet({ isRoot: false })).toMatchObject([{ name: "network bridge", without: expect.any(String) as string }])
    expect(networkProbes({ ...ideal, isRoot: false })[0]).toMatchObject({ name: "network proxy", isMet: true })
  })

  it.each<[string, Partial<NetworkFacts>, RegExp]>([
    ["nft", { hasNft: false }, /apt-get install nftables/],
    ["rules", { noRules: "no such thing" }, /modprobe -a nf_tables/],
    ["devices", { noDevices: "unknown type" }, /modprobe veth/],
    ["forwarding", { canForward: false }, /remount,rw/],
    ["addresses of our own", { rangeUsers: ["utun"] }, /ip route show root 198\.18/],
    ["a firewall that lets us", { rejecting: [{ chain: "inet a b", fix: "sudo nft x" }] }, /sudo nft x/],
  ])("without %s says what to do", (_, facts, fix) => {
    expect(unmet(facts)).toMatchObject([{ fix: expect.stringMatching(fix) as string }])
  })

  it("knows who has a route into our addresses", () => {
    const route = (device: string, to: string, mask: string): string => `${device}\t${to}\t0\t1\t0\t0\t0\t${mask}\t0`
    const table = [
      "Iface\tDestination",
      route("eth0", "00000000", "00000000"),
      route("wrnabc0000", "000012C6", "FCFFFFFF"),
      route("utun", "000013C6", "0000FFFF"),
      route("eth1", "0000A8C0", "00FFFFFF"),
    ].join("\n")
    expect(rangeUsers(table)).toEqual(["utun"])
  })

  it("sees it all on a real machine", async () => {
    expect(await lookAfter("ip link set lo up")).toEqual([])
    const taken = "ip link add tun9 type veth; ip addr add 198.18.0.1/16 dev tun9; ip link set tun9 up"
    expect(await lookAfter(taken)).toMatchObject([{ name: "bridge: addresses" }])
    const table =
      "table inet firewalld { chain filter_FORWARD { type filter hook forward priority 10; iifname lo accept; reject; }; }"
    expect(await lookAfter(`nft '${table}'`)).toMatchObject([
      { name: "bridge: firewall", fix: expect.stringMatching(/firewall-cmd/) as string },
    ])
    expect(await lookAfter("iptables-nft -A FORWARD -j REJECT")).toMatchObject([
      { fix: expect.stringMatching(/iptables-nft -I FORWARD/) as string },
    ])
    expect(await lookAfter("iptables-nft -P FORWARD DROP; iptables-legacy -P FORWARD DROP")).toEqual([])
  }, 30_000)
})
