import { posix } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { Plane } from "../plane.ts"
import type { Sandbox } from "../sandboxes.ts"
import { poured } from "../transfer.ts"

const passwdBytesMax = 256 * 1024
export const usualUser = "user"

/** Names and homes of one sandbox, as they are inside. */
export interface People {
  readonly homes: ReadonlyMap<string, string>
  readonly users: ReadonlyMap<number, string>
  readonly groups: ReadonlyMap<number, string>
}

/** One sandbox, for one request: who acts in it, and where paths lead. */
export class Inside {
  readonly plane: Plane
  readonly sandbox: Sandbox
  readonly user: string

  constructor(plane: Plane, sandbox: Sandbox, user: string | undefined) {
    this.plane = plane
    this.sandbox = sandbox
    this.user = user || (sandbox.settings.user ?? usualUser)
  }

  get session(): string {
    return this.sandbox.session.id
  }

  /** From where programs start unless they are told: the template's folder, or home. */
  async folder(): Promise<string> {
    return this.sandbox.settings.cwd ?? this.home()
  }

  /** `~` and what does not begin with `/` is at home; nothing at all is where programs start. */
  async path(given: string): Promise<string> {
    if (given.startsWith("/")) return posix.normalize(given)
    if (given === "") return this.folder()
    const rest = given === "~" || given.startsWith("~/") ? given.slice(2) : given
    return posix.join(await this.home(), rest)
  }

  async home(): Promise<string> {
    if (this.user === usualUser) return "/home/user"
    if (this.user === "root") return "/root"
    const home = (await this.people()).homes.get(this.user)
    if (home === undefined) throw unknownUser(this.user)
    return home
  }

  async people(): Promise<People> {
    const [passwd, group] = await Promise.all([this.#lines("/etc/passwd"), this.#lines("/etc/group")])
    return {
      homes: new Map(passwd.map(([name = "", , , , , home = "/"]) => [name, home])),
      users: new Map(passwd.map(([name = "", , uid]) => [Number(uid), name])),
      groups: new Map(group.map(([name = "", , gid]) => [Number(gid), name])),
    }
  }

  async #lines(path: string): Promise<string[][]> {
    const text = await this.read(path, passwdBytesMax).catch(() => Buffer.alloc(0))
    return text
      .toString()
      .split("\n")
      .map((line) => line.split(":"))
  }

  /** A small file of the system's. */
  async read(path: string, limit: number): Promise<Buffer> {
    const conversation = await this.plane.stream("file.read", { session: this.session, path, limit })
    const pieces: Buffer[] = []
    for await (const piece of poured(conversation)) pieces.push(piece)
    return Buffer.concat(pieces)
  }
}

export function unknownUser(name: string): Fault {
  return new Fault("unauthenticated", `invalid username: '${name}'`)
}

/** What init says of a name that nobody has. */
export function withUser<T>(name: string, work: Promise<T>): Promise<T> {
  return work.catch((thrown: unknown) => {
    const isUnknown = thrown instanceof Fault && thrown.code === "invalid" && thrown.message.includes("unknown user")
    throw isUnknown ? unknownUser(name) : thrown
  })
}
