import { expect } from "vitest"
import { GatewaySystem, insidePort } from "./gateway-system.ts"
import type { Ask } from "./http-door.ts"

/** A gateway with two sessions behind it: the one that is asked for, and one that must not be reached by way of it. */
export class TwoSessions extends GatewaySystem {
  mine = ""
  other = ""

  override async open(): Promise<void> {
    await super.open()
    this.mine = await this.session({ name: "mine" })
    this.other = await this.session({ name: "other" })
  }

  readonly base = (session = this.mine): string => `/s/${session}/t/${insidePort}`

  /** Refused, noted, and unknown to whatever runs inside. */
  readonly expectRefused = async (status: number, work: () => Promise<number>): Promise<void> => {
    const before = await this.#requestsSeen()
    const notes = this.notes.length
    expect(await work()).toBe(status)
    expect(this.notes.slice(notes).filter(({ call }) => call === "gateway.request")).toHaveLength(1)
    // One more for each session: the question itself.
    expect(await this.#requestsSeen()).toBe(before + 2)
  }

  readonly status = async (path: string, asked?: Ask): Promise<number> => (await this.get(path, asked)).status

  readonly socketStatus = async (path: string, asked?: Ask): Promise<number> => {
    const { head, socket } = await this.upgrade(path, asked)
    socket.destroy()
    return Number(head.split(" ")[1])
  }

  readonly rawStatus = async (text: string): Promise<number> => Number((await this.say(text)).split(" ")[1])

  async #requestsSeen(): Promise<number> {
    const seen = await Promise.all([this.seen(this.mine), this.seen(this.other)])
    return seen.reduce((sum, { requests = 0, upgrades = 0 }) => sum + requests + upgrades, 0)
  }
}
