import { isIP } from "node:net"
import { Fault } from "@warren/base/fault.ts"
import type { etcAt } from "./places.ts"

/** The texts behind `etcAt`; to be written 0644, so that everybody inside can read them. */
export function etcFiles(hostname: string, dns: readonly string[]): Readonly<Record<keyof typeof etcAt, string>> {
  for (const address of dns) {
    if (isIP(address) === 0)
      throw new Fault("invalid", `${JSON.stringify(address)} is not the address of a name server`)
  }
  return {
    // Without name servers libc would ask 127.0.0.1, where nobody answers: a short wait, once.
    resolv: [...dns.slice(0, 3).map((address) => `nameserver ${address}`), "options timeout:2 attempts:2", ""].join(
      "\n",
    ),
    hosts: `127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 ${hostname}\n`,
    hostname: `${hostname}\n`,
  }
}
