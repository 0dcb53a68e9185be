import { readFileSync } from "node:fs"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Driver, DriverName, Sandbox } from "@warren/drivers/driver.ts"
import type { Image, Mount, Network, SandboxId } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import type { Plan } from "./plan.ts"
import type { SessionStore } from "./session-store.ts"
import type { WayOut, WaysOut } from "./way-out.ts"

/** A sandbox that runs, with what belongs to it outside. */
export interface Live {
  readonly id: SandboxId
  readonly plan: Plan
  readonly sandbox: Sandbox
  readonly wayOut?: WayOut | undefined
}

/** Where images come from. */
export interface ImageSource {
  /** What a name stands for now. */
  resolve(name: string): string
  use(name: string, holder: string): Promise<Image>
  release(holder: string): void
}

/** Where workspaces come from: made when there is none of that name. */
export interface WorkspaceSource {
  hold(name: string, holder: string): Promise<string>
  release(holder: string): void
}

export interface SandboxesParts {
  readonly drivers: ReadonlyMap<DriverName, Driver>
  readonly images: ImageSource
  readonly workspaces: WorkspaceSource
  readonly waysOut: WaysOut
  readonly store: SessionStore
}

const workspaceAt = "/workspace"

/** Makes sandboxes of plans, and takes them away with everything that was made for them. */
export class Sandboxes {
  readonly #parts: SandboxesParts

  constructor(parts: SandboxesParts) {
    this.#parts = parts
  }

  /** The driver of that name, or what there is instead. */
  driver(name: DriverName): Driver {
    const driver = this.#parts.drivers.get(name)
    if (driver) return driver
    const there = [...this.#parts.drivers.keys()].join(", ")
    throw new Fault("unsupported", `the driver ${name} is not available here`, { hint: `there is: ${there}` })
  }

  /** A new one, running. Written down before anything of it exists; failed or cancelled, nothing of it stays. */
  async make(plan: Plan, owner: string, signal: AbortSignal): Promise<Live> {
    const id = newId("sbx")
    const driver = this.driver(plan.driver)
    this.#parts.store.noteSandbox(id, owner, plan)
    try {
      failpoint("sandbox/noted")
      await driver.create(await this.#spec(id, plan), signal)
      failpoint("sandbox/created")
      return await this.start(id, plan, signal)
    } catch (failure) {
      await this.destroy(id, plan)
      throw failure
    }
  }

  /** Starts one that was made before. */
  async start(id: SandboxId, plan: Plan, signal: AbortSignal): Promise<Live> {
    const wayOut = await this.#wayOut(id, plan)
    try {
      const sandbox = await this.driver(plan.driver).start(id, signal)
      failpoint("sandbox/started")
      return { id, plan, sandbox, wayOut }
    } catch (failure) {
      await wayOut?.[Symbol.asyncDispose]()
      throw failure
    }
  }

  /** One that went on while there was no runner. */
  async adopt(sandbox: Sandbox, plan: Plan): Promise<Live> {
    return { id: sandbox.id, plan, sandbox, wayOut: await this.#wayOut(sandbox.id, plan) }
  }

  /** Its files stay. */
  async stop(live: Live, graceMs?: number): Promise<void> {
    await this.driver(live.plan.driver).stop(live.id, graceMs)
    failpoint("sandbox/ended")
    await live.wayOut?.[Symbol.asyncDispose]()
  }

  /** Lets go of one that has to go on without us. */
  async leave(live: Live): Promise<void> {
    await live.wayOut?.[Symbol.asyncDispose]()
  }

  /** Nothing of it stays. Idempotent. */
  async destroy(id: SandboxId, plan: Plan, wayOut?: WayOut): Promise<void> {
    await this.driver(plan.driver).destroy(id)
    failpoint("sandbox/destroyed")
    await wayOut?.[Symbol.asyncDispose]()
    if (plan.network === "proxy") await this.#parts.waysOut.remove(id)
    this.#parts.images.release(id)
    if (plan.workspace !== undefined) this.#parts.workspaces.release(id)
    failpoint("sandbox/forgetting")
    this.#parts.store.forgetSandbox(id)
  }

  async #wayOut(id: SandboxId, plan: Plan): Promise<WayOut | undefined> {
    return plan.network === "proxy" ? await this.#parts.waysOut.open(id) : undefined
  }

  async #spec(id: SandboxId, plan: Plan) {
    const { machineImage } = this.driver(plan.driver)
    const isMachine = plan.image === "host" && machineImage !== undefined
    const image = isMachine ? machineImage : await this.#parts.images.use(plan.image, id)
    const { profile, limits, from } = plan
    const mounts: Mount[] = []
    if (plan.workspace !== undefined) {
      mounts.push({ from: await this.#parts.workspaces.hold(plan.workspace, id), to: workspaceAt, isReadOnly: false })
    }
    const dns = plan.network === "bridge" || plan.network === "host" ? nameServers() : []
    const network = this.#network(id, plan)
    return specOf(image, { id, profile, limits, network, mounts, dns, ...(from === undefined ? {} : { from }) })
  }

  #network(id: SandboxId, { network }: Plan): Network {
    if (network === "proxy") return { mode: "proxy", folder: this.#parts.waysOut.folder(id) }
    return { mode: network }
  }
}

const publicServers = ["1.1.1.1", "8.8.8.8"]

/** Those of the machine; one on the machine's own loopback cannot be reached from inside. */
function nameServers(): string[] {
  const text = readFileSync("/etc/resolv.conf", "utf8")
  const found = [...text.matchAll(/^\s*nameserver\s+([0-9a-fA-F.:]+)/gm)].map(([, address = ""]) => address)
  const reachable = found.filter((address) => !address.startsWith("127.") && address !== "::1")
  return reachable.length > 0 ? reachable : publicServers
}
