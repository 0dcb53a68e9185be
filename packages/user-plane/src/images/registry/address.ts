import { Fault } from "@warren/base/fault.ts"
import type { Reference } from "../reference.ts"

/** Docker's registry lives elsewhere than its name says. */
const homes: Readonly<Record<string, string>> = { "docker.io": "registry-1.docker.io" }

export function registryAddress({ registry }: Reference, isPlainHttp: boolean): URL {
  const host = homes[registry] ?? registry
  const isPlain = isPlainHttp || isLoopback(new URL(`http://${host}`))
  return new URL(`${isPlain ? "http" : "https"}://${host}/v2/`)
}

/** Without encryption only to this machine, or when asked for. */
export function checkAddress(address: URL, isPlainHttp: boolean): void {
  if (address.protocol === "https:") return
  if (address.protocol === "http:" && (isPlainHttp || isLoopback(address))) return
  throw new Fault("forbidden", `the registry leads to ${address.protocol}//${address.host}, which is not encrypted`)
}

function isLoopback({ hostname }: URL): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}
