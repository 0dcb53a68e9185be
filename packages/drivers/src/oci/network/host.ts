import { existsSync, readFileSync, writeFileSync } from "node:fs"

/** The names of all network devices of the host. */
export function devices(): string[] {
  const lines = readFileSync("/proc/net/dev", "utf8").trim().split("\n").slice(2)
  return lines.map((line) => line.split(":", 1)[0]?.trim() ?? "")
}

/** Those that some route goes by. */
export function routedDevices(): string[] {
  const lines = readFileSync("/proc/net/route", "utf8").trim().split("\n").slice(1)
  return [...new Set(lines.map((line) => line.split("\t", 1)[0] ?? ""))]
}

/** Whether packets that come in by a device are passed on; of `all`, whether the host is a router anyway. */
export function isForwarding(device: string): boolean {
  return existsSync(forwarding(device)) && readFileSync(forwarding(device), "utf8").trim() === "1"
}

/** A device that is gone has nothing to set. */
export function setForwarding(device: string, isOn: boolean): void {
  if (existsSync(forwarding(device))) writeFileSync(forwarding(device), isOn ? "1" : "0")
}

function forwarding(device: string): string {
  return `/proc/sys/net/ipv4/conf/${device}/forwarding`
}
