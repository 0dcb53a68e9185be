import { spawn } from "node:child_process"
import { connect, type Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Fault } from "@warren/base/fault.ts"
import { defaultLimits } from "@warren/drivers/sandbox-spec.ts"
import { bootstrapFrame, type Bootstrap } from "@warren/protocol/bootstrap.ts"
import type { TurnCause } from "@warren/protocol/hub/words.ts"
import { HostWorkbench } from "../../git/testing/host-workbench.ts"
import type { Guest, GuestStart, Places, Stay } from "../guest.ts"

/** Real supervisors as plain processes of this machine. They outlive hubs, and can be cut off and killed. */
export class HostPlaces implements Places, AsyncDisposable {
  readonly uses = new Map<string, number>()
  launches = 0
  readonly bench: HostWorkbench
  readonly #program: string
  readonly #folder: string
  readonly #guests = new Map<string, HostGuest>()

  constructor(program: string, folder: string) {
    this.#program = program
    this.#folder = folder
    this.bench = new HostWorkbench(folder)
  }

  stay(session: string, signal: AbortSignal): Promise<Stay> {
    signal.throwIfAborted()
    this.#count(session, 1)
    let isOver = false
    return Promise.resolve({
      find: () => Promise.resolve(this.#running(session)?.again()),
      launch: (start: GuestStart) => Promise.resolve(this.#launch(session, start)),
      bench: this.bench,
      [Symbol.dispose]: () => {
        if (!isOver) this.#count(session, -1)
        isOver = true
      },
    })
  }

  isGone(): boolean {
    return false
  }

  isAwake(): boolean {
    return true
  }

  isPaused(): boolean {
    return false
  }

  /** What is under way on the connection may be lost. */
  cut(session: string): void {
    this.#guests.get(session)?.cut()
  }

  kill(session: string): void {
    this.#guests.get(session)?.shoot()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const guest of this.#guests.values()) await guest.kill()
  }

  #running(session: string): HostGuest | undefined {
    const guest = this.#guests.get(session)
    return guest?.isRunning ? guest : undefined
  }

  #launch(session: string, { spec: agent, token, provisioned }: GuestStart): HostGuest {
    const path = `${this.#folder}/${session}.${++this.launches}.sock`
    const guest = new HostGuest(this.#program, path, this.#folder, {
      ...{ userId: "me", session, driver: "none", workspaceRoot: provisioned.folder ?? this.#folder },
      runtimePolicy: { mounts: [], resources: defaultLimits, credentialRefs: [] },
      startupStatus: { sidecarAvailable: true, shellAvailable: true, browserAvailable: false, degradedReasons: [] },
      hub: { url: `listen:${path}`, token },
      agent,
    })
    this.#guests.set(session, guest)
    return guest
  }

  #count(session: string, by: number): void {
    this.uses.set(session, (this.uses.get(session) ?? 0) + by)
  }
}

class HostGuest implements Guest {
  readonly ended: Promise<TurnCause>
  complaint = ""
  readonly #path: string
  readonly #child: ReturnType<typeof spawn>
  readonly #ready: Promise<unknown>
  #stream: Socket | undefined

  constructor(program: string, path: string, home: string, bootstrap: Bootstrap) {
    this.#path = path
    const child = spawn(process.execPath, [program, "--bootstrap-stdin"], {
      detached: true,
      // As in a sandbox: nothing of whoever runs the tests.
      env: { ...process.env, HOME: home },
      stdio: ["pipe", "pipe", "pipe"],
    })
    this.#child = child
    child.stdin.on("error", () => undefined)
    child.stdin.write(bootstrapFrame(bootstrap))
    this.#ready = new Promise((resolve) => child.stdout.once("data", resolve))
    child.stderr.on("data", (piece: Buffer) => (this.complaint = (this.complaint + piece.toString()).slice(-2_048)))
    this.ended = new Promise((resolve) => child.once("close", () => resolve("orphaned")))
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** The same one, as another runner finds it. */
  again(): this {
    return this
  }

  async connect(signal: AbortSignal): Promise<Duplex> {
    await Promise.race([this.#ready, this.ended])
    signal.throwIfAborted()
    const stream = connect(this.#path)
    this.#stream = stream
    await new Promise<void>((resolve, reject) => {
      stream.once("connect", resolve)
      // Cut before it is there it only closes.
      for (const end of ["error", "close"]) stream.once(end, () => reject(new Fault("unavailable", "nobody listens")))
    })
    stream.on("error", () => undefined)
    return stream
  }

  cut(): void {
    this.#stream?.destroy()
  }

  shoot(): void {
    try {
      process.kill(-(this.#child.pid ?? 0), "SIGKILL")
    } catch {
      // It is gone already.
    }
  }

  async kill(): Promise<void> {
    this.shoot()
    await this.ended
  }

  leave(): Promise<void> {
    return Promise.resolve()
  }
}
