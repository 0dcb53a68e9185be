import { execFileSync, spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"

export const ip = (...args: string[]): void => void execFileSync("ip", args)

/** A machine with servers (outside.mjs), at the other end of the host's device `device`. */
export async function machine(device: string, host: string, addresses: readonly string[]): Promise<ChildProcess> {
  const child = spawn("unshare", ["--net", process.execPath, join(import.meta.dirname, "outside.mjs")], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  // However this process ends: a machine that nobody is connected to would wait for ever.
  process.once("exit", () => child.kill())
  await once(child.stdout, "data")
  const there = (...args: string[]): void =>
    void execFileSync("nsenter", [`--net=/proc/${child.pid}/ns/net`, "ip", ...args])
  ip("link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", String(child.pid))
  ip("addr", "add", `${host}/24`, "dev", device)
  ip("link", "set", device, "up")
  there("link", "set", "lo", "up")
  there("link", "set", "eth0", "up")
  for (const address of addresses) there("addr", "add", address, "dev", "eth0")
  there("route", "add", "default", "via", host)
  return child
}
