import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { isIPv4 } from "node:net"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { ProcessName } from "../launcher.ts"
import { startTicksOf } from "../process.ts"
import { devices, isForwarding, routedDevices, setForwarding } from "./host.ts"
import { anyDevice, lineOf, Slots, type Line } from "./line.ts"
import { rules } from "./rules.ts"
import { checkTools, run } from "./tools.ts"

/** A sandbox that has an address, and whom it may ask for names. */
export interface Connected {
  readonly slot: number
  readonly dns: readonly string[]
}

/**
 * Sandboxes with an address of their own. Each has a cable to the host, which passes on and translates what it sends, as far as
 * one table of rules for all of them lets it. Everything carries our mark, and what is on the host goes with the last of them.
 */
export class Bridge {
  readonly #mark: string
  readonly #table: string
  /** What we changed on the host, written before it is changed: there are rules only if there is this. */
  readonly #changes: string
  readonly #slots = new Slots()
  #rules: Promise<void> | undefined
  #closing: Promise<void> = Promise.resolve()

  /** `hash` is that of the data folder `root`. */
  constructor(root: string, hash: string) {
    this.#mark = hash.slice(0, 6)
    this.#table = `warren_${hash}`
    this.#changes = join(root, "network.json")
  }

  take(): number {
    checkTools()
    return this.#slots.take()
  }

  keep(slot: number): void {
    this.#slots.keep(slot)
  }

  /** The last one takes the rules along. */
  async give(slot: number): Promise<void> {
    this.#slots.give(slot)
    await this.#closeIfUnused()
  }

  /** Gives a running sandbox its address. Its rules are in force before. */
  async connect(sandbox: Connected, process: ProcessName): Promise<void> {
    const line = this.#line(sandbox.slot)
    await this.disconnect(sandbox)
    const namespace = openSync(`/proc/${process.pid}/ns/net`, "r")
    try {
      // Only now is it certain whose network that is.
      if (startTicksOf(process.pid) !== process.startTicks) throw new Fault("unavailable", "the sandbox has ended")
      await Promise.all([this.#prepare(sandbox), run("ip", ["-batch", "-"], hostSide(line), namespace)])
      setForwarding(line.device, true)
      await run("nsenter", ["--net=/proc/self/fd/3", "ip", "-batch", "-"], sandboxSide(line), namespace)
    } finally {
      closeSync(namespace)
    }
  }

  /** Puts the rules in force for a sandbox that has its address already, from an earlier process. */
  async restore(sandbox: Connected): Promise<void> {
    if (!devices().includes(this.#line(sandbox.slot).device)) throw new Fault("unavailable", "its network is gone")
    await this.#prepare(sandbox)
  }

  /** The kernel takes the cable away with the sandbox, but later: a new one with the same address would be in its way. */
  async disconnect(sandbox: Connected): Promise<void> {
    const { device } = this.#line(sandbox.slot)
    if (!devices().includes(device)) return
    await this.#remove([device])
    const elements = this.#resolversOf(sandbox)
    // Added first: then there is something to delete, whatever was there.
    if (elements !== undefined) await this.#nft(`add element ${elements}\ndelete element ${elements}\n`)
  }

  /** Removes what an earlier process left: cables that none of these has, and the rules when nobody needs them. */
  async sweep(running: readonly number[]): Promise<void> {
    const known = new Set(running.map((slot) => this.#line(slot).device))
    const ours = devices().filter((device) => device.startsWith(`${anyDevice}${this.#mark}`))
    await this.#remove(ours.filter((device) => !known.has(device)))
    await this.#closeIfUnused()
  }

  async #prepare(sandbox: Connected): Promise<void> {
    await this.#closing
    this.#openWays()
    this.#rules ??= this.#load()
    try {
      await this.#rules
    } catch (failure) {
      this.#rules = undefined
      throw failure
    }
    const elements = this.#resolversOf(sandbox)
    if (elements !== undefined) await this.#nft(`add element ${elements}\n`)
  }

  #line(slot: number): Line {
    return lineOf(this.#mark, slot)
  }

  #resolversOf({ slot, dns }: Connected): string | undefined {
    const { device } = this.#line(slot)
    const pairs = dns.filter((address) => isIPv4(address)).map((address) => `${device} . ${address}`)
    return pairs.length === 0 ? undefined : `inet ${this.#table} resolvers { ${pairs.join(", ")} }`
  }

  #nft(script: string): Promise<void> {
    return run("nft", ["-f", "-"], script)
  }

  #load(): Promise<void> {
    const onlyOurs = !isForwarding("all")
    return this.#nft(rules({ table: this.#table, mark: this.#mark, onlyOurs }))
  }

  async #remove(unwanted: readonly string[]): Promise<void> {
    if (unwanted.length === 0) return
    const script = unwanted.map((device) => `link del ${device}\n`).join("")
    try {
      await run("ip", ["-force", "-batch", "-"], script)
    } catch (failure) {
      // The kernel may have been faster.
      const left = new Set(devices())
      if (unwanted.some((device) => left.has(device))) throw failure
    }
  }

  /** What comes back must be passed on, too, by whatever device it comes. */
  #openWays(): void {
    const before = this.#turnedOn()
    const closed = routedDevices().filter((device) => !device.startsWith(anyDevice) && !isForwarding(device))
    if (before !== undefined && closed.length === 0) return
    const all = [...new Set([...(before ?? []), ...closed])]
    writeFileSync(`${this.#changes}.tmp`, JSON.stringify(all), { mode: 0o600 })
    renameSync(`${this.#changes}.tmp`, this.#changes)
    for (const device of closed) setForwarding(device, true)
  }

  #turnedOn(): readonly string[] | undefined {
    if (!existsSync(this.#changes)) return undefined
    return JSON.parse(readFileSync(this.#changes, "utf8")) as string[]
  }

  async #closeIfUnused(): Promise<void> {
    if (!this.#slots.isEmpty || !existsSync(this.#changes)) return
    this.#rules = undefined
    const closing = this.#closing.then(() => this.#close())
    this.#closing = closing.catch(() => undefined)
    await closing
  }

  async #close(): Promise<void> {
    await this.#nft(`table inet ${this.#table}\ndelete table inet ${this.#table}\n`)
    // Another Warren may need them.
    const isAnybodyLeft = devices().some((device) => device.startsWith(anyDevice))
    const turnedOn = isAnybodyLeft || isForwarding("all") ? [] : (this.#turnedOn() ?? [])
    for (const device of turnedOn) setForwarding(device, false)
    rmSync(this.#changes, { force: true })
  }
}

function hostSide({ device, gateway }: Line): string {
  return `link add ${device} type veth peer name eth0 netns /proc/self/fd/3
link set ${device} addrgenmode none
addr add ${gateway}/30 dev ${device}
link set ${device} up
`
}

function sandboxSide({ gateway, address }: Line): string {
  return `link set eth0 addrgenmode none
addr add ${address}/30 dev eth0
link set eth0 up
route add default via ${gateway}
`
}
