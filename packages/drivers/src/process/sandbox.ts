import type { Duplex } from "node:stream"
import { Fault } from "@warren/base/fault.ts"
import type { Pausable, Sandbox, SandboxStats } from "../driver.ts"
import type { Cgroup } from "../oci/cgroup/cgroup.ts"
import { diskUsage } from "../oci/disk-usage.ts"
import type { ProcessName } from "../oci/launcher.ts"
import { stateOf } from "../oci/process.ts"
import { InitDoor } from "../init/door.ts"
import type { Posture } from "../posture.ts"
import type { SandboxId } from "../sandbox-spec.ts"
import { measure } from "./measure.ts"
import { isAlive, treeUsage } from "./process-tree.ts"
import { Translated } from "./translated.ts"
import type { View } from "./view.ts"

interface SandboxParts {
  readonly id: SandboxId
  readonly keeper: ProcessName
  readonly init: ProcessName
  readonly socket: string
  readonly data: string
  readonly view: View
  readonly cgroup: Cgroup | undefined
  readonly degraded: readonly string[]
  readonly ended: Promise<void>
}

/** A tree of confined processes of this machine. */
export class ProcessSandbox implements Sandbox, Pausable {
  readonly id: SandboxId
  readonly ended: Promise<void>
  readonly #parts: SandboxParts
  readonly #door: InitDoor

  constructor(parts: SandboxParts) {
    this.id = parts.id
    this.ended = parts.ended
    this.#parts = parts
    this.#door = new InitDoor(parts.socket)
  }

  async connect(signal?: AbortSignal): Promise<Duplex> {
    return new Translated(await this.#door.connect(signal), this.#parts.view)
  }

  async posture(): Promise<Posture> {
    this.#mustLive()
    return measure(this.#parts.init.pid, this.#parts.cgroup, this.#parts.degraded)
  }

  async stats(): Promise<SandboxStats> {
    this.#mustLive()
    return {
      ...this.#usage(),
      // There is no network to count.
      receivedBytes: 0,
      sentBytes: 0,
      diskBytes: await diskUsage(this.#parts.data),
      oomKills: this.oomKills(),
    }
  }

  isRunning(): boolean {
    return !"TtZX".includes(stateOf(this.#parts.init) ?? "X")
  }

  oomKills(): number {
    return this.#parts.cgroup?.oomKills() ?? 0
  }

  async pause(): Promise<void> {
    await this.#group().freeze()
  }

  resume(): Promise<void> {
    this.#group().thaw()
    return Promise.resolve()
  }

  #usage(): Omit<SandboxStats, "receivedBytes" | "sentBytes" | "diskBytes" | "oomKills"> {
    const { cgroup, keeper } = this.#parts
    if (cgroup) return cgroup.usage()
    const usage = treeUsage(keeper.pid)
    // Nobody keeps the peak, or counts refused forks: what there is now is the most that is known.
    return { ...usage, memoryPeakBytes: usage.memoryBytes, pidsRefused: 0 }
  }

  #mustLive(): void {
    if (!isAlive(this.#parts.init)) throw new Fault("unavailable", "the sandbox has ended")
  }

  #group(): Cgroup {
    if (this.#parts.cgroup) return this.#parts.cgroup
    throw new Fault("unsupported", "there is no cgroup to pause it with")
  }
}
