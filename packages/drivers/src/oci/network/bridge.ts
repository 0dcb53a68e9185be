import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { isIPv4 } from "node:net"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { LineRequest, ProcessName } from "../launcher.ts"
import { blockIn, forwardChains, passIn } from "./firewall.ts"
import { devices, isForwarding, routedDevices, setForwarding } from "./host.ts"
import { anyDevice, lineOf, Slots, type Line } from "./line.ts"
import { rules } from "./rules.ts"
import { checkTools, runNft } from "./tools.ts"

/** A sandbox that has an address, and whom it may ask for names. */
export interface Connected {
  readonly slot: number
  readonly dns: readonly string[]
}

/** Who makes and removes the cables: the launcher. */
interface Cables {
  connectNetwork(process: ProcessName, line: LineRequest & Pick<Line, "gateway" | "address">): Promise<void>
  disconnectNetwork(line: LineRequest): Promise<void>
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
  readonly #cables: Cables
  #rules: Promise<void> | undefined
  #closing: Promise<void> = Promise.resolve()

  /** `hash` is that of the data folder `root`. */
  constructor(root: string, hash: string, cables: Cables) {
    this.#cables = cables
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
    const { device, gateway, address } = this.#line(sandbox.slot)
    await this.disconnect(sandbox)
    await this.#prepare()
    await this.#cables.connectNetwork(process, { ...this.#request(sandbox), gateway, address })
    setForwarding(device, true)
  }

  /** Puts the rules in force for a sandbox that has its address already, from an earlier process. */
  async restore(sandbox: Connected): Promise<void> {
    const { device } = this.#line(sandbox.slot)
    if (!devices().includes(device)) throw new Fault("unavailable", "its network is gone")
    await this.#prepare()
    const pairs = this.#request(sandbox).resolvers.map((address) => `${device} . ${address}`)
    if (pairs.length > 0) await runNft(`add element inet ${this.#table} resolvers { ${pairs.join(", ")} }\n`)
  }

  /** The kernel takes the cable away with the sandbox, but later: a new one with the same address would be in its way. */
  async disconnect(sandbox: Connected): Promise<void> {
    const request = this.#request(sandbox)
    if (devices().includes(request.device)) await this.#cables.disconnectNetwork(request)
  }

  /** Removes what an earlier process left: cables that none of these has, and the rules when nobody needs them. */
  async sweep(running: readonly number[]): Promise<void> {
    const known = new Set(running.map((slot) => this.#line(slot).device))
    const ours = devices().filter((device) => device.startsWith(`${anyDevice}${this.#mark}`))
    const strays = ours.filter((device) => !known.has(device))
    for (const device of strays) await this.#cables.disconnectNetwork({ device, table: this.#table, resolvers: [] })
    await this.#closeIfUnused()
  }

  async #prepare(): Promise<void> {
    await this.#closing
    this.#openWays()
    this.#rules ??= this.#load()
    try {
      await this.#rules
    } catch (failure) {
      this.#rules = undefined
      throw failure
    }
  }

  #line(slot: number): Line {
    return lineOf(this.#mark, slot)
  }

  #request({ slot, dns }: Connected): LineRequest {
    return { device: this.#line(slot).device, table: this.#table, resolvers: dns.filter((address) => isIPv4(address)) }
  }

  async #load(): Promise<void> {
    const onlyOurs = !isForwarding("all")
    await runNft(rules({ table: this.#table, mark: this.#mark, onlyOurs }))
    const dropping = (await forwardChains()).filter(({ isDropping }) => isDropping)
    for (const chain of dropping) await passIn(chain, this.#mark, this.#table)
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
    for (const chain of await forwardChains()) await blockIn(chain, this.#table)
    await runNft(`table inet ${this.#table}\ndelete table inet ${this.#table}\n`)
    // Another Warren may need them.
    const isAnybodyLeft = devices().some((device) => device.startsWith(anyDevice))
    const turnedOn = isAnybodyLeft || isForwarding("all") ? [] : (this.#turnedOn() ?? [])
    for (const device of turnedOn) setForwarding(device, false)
    rmSync(this.#changes, { force: true })
  }
}
