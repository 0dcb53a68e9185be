import { readdirSync, readFileSync } from "node:fs"
import { expect } from "vitest"
import { ApiSystem } from "../../api/system.ts"
import { Door } from "../../gateway/door.ts"

/** For sessions that need nobody outside. */
export const quiet = { network: { mode: "none" } } as const
export const mebibyte = 2 ** 20

/** Whom the rows of the checklist are tried on: one system with one session and one workspace, at the door that everybody reaches. */
export class Subject implements AsyncDisposable {
  readonly system: ApiSystem
  readonly door: Door
  session = ""

  private constructor(system: ApiSystem) {
    this.system = system
    this.door = new Door(system.port)
  }

  static async start(settings: NodeJS.ProcessEnv = {}): Promise<Subject> {
    const subject = new Subject(await ApiSystem.start(settings))
    await subject.json("/v1/workspaces", { name: "listed" })
    subject.session = String(
      (await subject.json("/v1/sessions", { ...quiet, name: "listed", workspace: "listed" }))["id"],
    )
    return subject
  }

  async json(path: string, body: object, headers: Record<string, string> = {}): Promise<Record<string, unknown>> {
    const answer = await this.system.fetch(path, { method: "POST", body: JSON.stringify(body), headers })
    const text = await answer.text()
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${text}`)
    return JSON.parse(text) as Record<string, unknown>
  }

  async run(cmd: string, session = this.session): Promise<string> {
    return String((await this.json(`/v1/sessions/${session}/exec`, { cmd }))["stdout"])
  }

  inSession(path: string, more = ""): string {
    return `/v1/sessions/${this.session}/files/content?path=${encodeURIComponent(path)}${more}`
  }

  inWorkspace(path: string): string {
    return `/v1/workspaces/listed/content?path=${encodeURIComponent(path)}`
  }

  async statusOf(path: string, init?: RequestInit): Promise<number> {
    const answer = await this.system.fetch(path, init)
    await answer.arrayBuffer()
    return answer.status
  }

  async healthy(): Promise<void> {
    expect(await this.statusOf("/v1/health")).toBe(200)
    expect(await this.run("echo alive")).toBe("alive\n")
  }

  /** Of the runner or the control plane, whichever has more. */
  residentBytes(): number {
    return Math.max(...Object.values(this.system.pids).map(residentBytesOf))
  }

  descriptors(): number {
    return Object.values(this.system.pids).reduce((sum, pid) => sum + readdirSync(`/proc/${pid}/fd`).length, 0)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.system[Symbol.asyncDispose]()
  }
}

export function residentBytesOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024
}
