import { readFileSync } from "node:fs"
import type { Duplex } from "node:stream"
import { Fault } from "@warren/base/fault.ts"
import type { Pausable, Sandbox, SandboxStats } from "../driver.ts"
import { InitDoor } from "../init/door.ts"
import type { Posture } from "../posture.ts"
import type { SandboxId } from "../sandbox-spec.ts"
import type { Cgroup } from "./cgroup/cgroup.ts"
import type { ProcessName } from "./launcher.ts"
import { measure } from "./measure.ts"
import { startTicksOf, stateOf } from "./process.ts"

interface SandboxParts {
  readonly id: SandboxId
  readonly process: ProcessName
  readonly socket: string
  readonly cgroup: Cgroup
  diskUsage(): Promise<number>
  degraded(): readonly string[]
  /** What it sends and receives on the host's network cannot be told from what others do. */
  readonly hasHostNetwork: boolean
  readonly ended: Promise<void>
}

/** A sandbox that crun runs. */
export class OciSandbox implements Sandbox, Pausable {
  readonly id: SandboxId
  readonly ended: Promise<void>
  readonly #parts: SandboxParts
  readonly #door: InitDoor
  #isPaused = false
  #holds = 0

  constructor(parts: SandboxParts) {
    this.id = parts.id
    this.ended = parts.ended
    this.#parts = parts
    this.#door = new InitDoor(parts.socket)
  }

  connect(signal?: AbortSignal): Promise<Duplex> {
    return this.#door.connect(signal)
  }

  posture(): Promise<Posture> {
    const { cgroup } = this.#parts
    return Promise.resolve().then(() => this.#read((pid) => measure(pid, cgroup, this.#parts.degraded())))
  }

  async stats(): Promise<SandboxStats> {
    return {
      ...this.#parts.cgroup.usage(),
      ...(this.#parts.hasHostNetwork ? { receivedBytes: 0, sentBytes: 0 } : this.#read(networkBytes)),
      diskBytes: await this.#parts.diskUsage(),
      oomKills: this.oomKills(),
    }
  }

  isRunning(): boolean {
    try {
      return !"TtZX".includes(stateOf(this.#parts.process) ?? "X") && !this.#parts.cgroup.isFrozen()
    } catch {
      // Its group is gone, and so is it.
      return false
    }
  }

  oomKills(): number {
    return this.#parts.cgroup.oomKills()
  }

  async pause(): Promise<void> {
    await this.#parts.cgroup.freeze()
    this.#isPaused = true
  }

  async resume(): Promise<void> {
    this.#isPaused = false
    if (this.#holds === 0) this.#parts.cgroup.thaw()
    await Promise.resolve()
  }

  /** Nothing in it moves while `work` is under way. Afterwards it is as it was, or as somebody has asked for meanwhile. */
  async whilePaused<T>(work: () => Promise<T>): Promise<T> {
    this.#holds++
    try {
      await this.#parts.cgroup.freeze()
      return await work()
    } finally {
      this.#holds--
      if (this.#holds === 0 && !this.#isPaused) this.#parts.cgroup.thaw()
    }
  }

  /** Reads something of init from `/proc`. When init has ended, nothing there is ours any more. */
  #read<T>(read: (pid: number) => T): T {
    const { pid, startTicks } = this.#parts.process
    const ended = (cause?: unknown): Fault =>
      new Fault("unavailable", "the sandbox has ended", { cause, subject: `sandbox:${this.id}` })
    try {
      const value = read(pid)
      if (startTicksOf(pid) === startTicks) return value
    } catch (cause) {
      throw ended(cause)
    }
    throw ended()
  }
}

/** Loopback is the sandbox talking to itself and does not count. */
function networkBytes(pid: number): { receivedBytes: number; sentBytes: number } {
  const lines = readFileSync(`/proc/${pid}/net/dev`, "utf8").trim().split("\n").slice(2)
  const counted = lines.map((line) => line.trim().split(/[\s:]+/)).filter(([name]) => name !== "lo")
  return {
    receivedBytes: counted.reduce((sum, fields) => sum + Number(fields[1]), 0),
    sentBytes: counted.reduce((sum, fields) => sum + Number(fields[9]), 0),
  }
}
