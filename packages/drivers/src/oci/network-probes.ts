import type { Probe } from "../driver.ts"
import { ourRange } from "./network/line.ts"
import type { NetworkFacts } from "./network/network-facts.ts"

/** Which networks sandboxes can have here, in the order it bites. What is missing costs the network `bridge` and nothing else. */
export function networkProbes(facts: NetworkFacts): Probe[] {
  return [proxy, ...(facts.isRoot ? lacksOf(facts) : [onlyRoot])]
}

const withoutBridge = 'there is no network "bridge"'

const proxy: Probe = { name: "network proxy", isMet: true, detail: "needs nothing of the machine" }

const onlyRoot: Probe = {
  name: "network bridge",
  isMet: false,
  detail: "only root can give a sandbox an address of its own",
  fix: "sudo npm start",
  without: withoutBridge,
}

function lacksOf(facts: NetworkFacts): Probe[] {
  const { hasNft, noRules, noDevices, canForward, rangeUsers, rejecting } = facts
  const [chain] = rejecting
  return [
    look("bridge: nft", hasNft ? undefined : "nft is not installed", "sudo apt-get install nftables"),
    look(
      "bridge: rules",
      noRules,
      "sudo modprobe -a nf_tables nft_ct nft_fib_inet nft_masq nft_reject_inet nft_connlimit",
    ),
    look("bridge: devices", noDevices, "sudo modprobe veth"),
    look(
      "bridge: forwarding",
      canForward ? undefined : "/proc/sys is read-only",
      "run Warren outside of the container, or: sudo mount -o remount,rw /proc/sys",
    ),
    look(
      "bridge: addresses",
      rangeUsers.length === 0 ? undefined : `${rangeUsers.join(", ")} has a route into ${ourRange}, which is ours`,
      `give it other addresses (ip route show root ${ourRange} lists them)`,
      "sandboxes with an address cannot reach what is there",
    ),
    look(
      "bridge: firewall",
      chain && `the chain ${chain.chain} ends by refusing what it does not know`,
      chain?.fix ?? "",
      'sandboxes with the network "bridge" reach nothing',
    ),
  ]
}

function look(name: string, lack: string | undefined, fix: string, without = withoutBridge): Probe {
  if (lack === undefined) return { name, isMet: true, detail: "fine" }
  return { name, isMet: false, detail: lack, fix, without }
}
