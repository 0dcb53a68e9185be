import { Fault } from "@warren/base/fault.ts"
import type { Handlers, Received } from "@warren/protocol/contract.ts"
import { describeIssues } from "@warren/protocol/issues.ts"
import { agentTools, toolLimits, type AgentTools, type ToolName } from "@warren/protocol/hub/tools.ts"
import type { Chats, Message } from "../chat/chats.ts"
import type { Tunnels } from "../gateway/tunnels.ts"
import { Repository } from "../git/repository.ts"
import { SandboxWorkbench } from "../git/sandbox-workbench.ts"
import type { EnvironmentOf } from "../processes/handlers.ts"
import { Children, type ChildrenParts } from "./children.ts"
import { imageTypeOf } from "./image-type.ts"

export interface ToolsParts extends ChildrenParts {
  readonly chats: Chats
  readonly tunnels: Tunnels
  readonly environmentOf: EnvironmentOf
}

type Tool = (input: never, context: { readonly signal: AbortSignal }) => Promise<unknown>

/** What agents ask of Warren. Each acts for its own session: for no other than those it has started. */
export class Tools {
  readonly #parts: ToolsParts
  readonly #children: Children

  constructor(parts: ToolsParts) {
    this.#parts = parts
    this.#children = new Children(parts)
  }

  /** `session` is who asks: known by the line it came on. */
  async call(session: string, name: string, input: unknown, signal: AbortSignal): Promise<unknown> {
    if (!Object.hasOwn(agentTools, name)) throw new Fault("not_found", `there is no tool ${name.slice(0, 64)}`)
    const known = name as ToolName
    const read = agentTools[known].in.safeParse(input)
    if (!read.success) throw new Fault("invalid", `${known}: ${describeIssues(read.error)}`)
    const tool = this.#of(session)[known] as unknown as Tool
    return agentTools[known].out.parse(await tool(read.data as never, { signal }))
  }

  /** A session was deleted: what it has started ends with it. */
  async orphaned(session: string): Promise<void> {
    const { family } = this.#parts
    for (const { child } of family.children(session)) await this.#children.end(child)
    family.forget(session)
  }

  /** What a runner that was killed had not ended. */
  async sweep(): Promise<void> {
    for (const parent of this.#parts.family.parents())
      if (this.#children.about(parent) === undefined) await this.orphaned(parent)
  }

  #of(session: string): Handlers<AgentTools> {
    const { tunnels, family } = this.#parts
    const children = this.#children
    return {
      spawn_session: (asked, { signal }) => children.spawn(session, asked, signal),
      list_sessions: async () => ({ sessions: children.list(session) }),
      terminate_session: async ({ session: which }) => {
        await children.end(children.own(session, which))
        return { isEnded: true }
      },
      session_status: async ({ session: which }) =>
        this.#status(which === undefined ? session : children.own(session, which)),
      send_message: async (asked) => this.#send(session, asked),
      read_messages: async (asked) => ({ messages: this.#read(session, asked) }),
      complete: async ({ summary }) => {
        const kin = family.of(session)
        family.complete(session)
        if (kin) family.leave(kin.parent, session, summary)
        return { isTold: kin !== undefined }
      },
      git_state: async (_, { signal }) => this.#git(session, signal),
      upload_image: async (asked, { signal }) => this.#show(session, asked, signal),
      // For its owner alone: who else may see what an agent serves is for a person to say.
      create_tunnel: async ({ name, port }) =>
        tunnels.create({ session, name, port, protocol: "auto", visibility: "private" }).tunnel,
      list_tunnels: async () => ({ tunnels: tunnels.list({ session, limit: 200 }).items }),
      delete_tunnel: async ({ name }) => ({ isDeleted: tunnels.delete({ session, name }) }),
    }
  }

  #status(session: string) {
    const about = this.#children.about(session)
    if (!about) throw new Fault("not_found", "the session is gone")
    const { family } = this.#parts
    const parent = family.of(session)?.parent
    return { ...about, ...(parent === undefined ? {} : { parent }), children: family.children(session).length }
  }

  #send(session: string, { session: to, text }: Received<AgentTools, "send_message">): { isSent: boolean } {
    const { family, hub } = this.#parts
    if (to !== "parent") {
      const channel = `session:${session}`
      hub.of(this.#children.own(session, to)).prompt({ text, channel, mode: "followup", wishes: {} })
      return { isSent: true }
    }
    const kin = family.of(session)
    if (!kin) throw new Fault("not_found", "no session has started this one")
    // Left for it to read: a session does not make the one above it do anything.
    family.leave(kin.parent, session, text)
    return { isSent: true }
  }

  #read(session: string, { session: of, after, limit }: Received<AgentTools, "read_messages">) {
    const { family, store, chats } = this.#parts
    if (of === undefined) return fitting(family.letters(session, after, limit))
    const child = this.#children.own(session, of)
    const chatId = store.chatOf(child, `session:${session}`)
    if (chatId === undefined) return []
    return fitting(chats.messages(chatId, { after, limit }).items.map(letterOf))
  }

  async #git(session: string, signal: AbortSignal) {
    const { sessions, environmentOf, store } = this.#parts
    using use = await sessions.use(session, signal)
    const bench = new SandboxWorkbench(use, environmentOf)
    return await new Repository(bench, store.agent(session)?.provisioned?.folder ?? bench.root).state(signal)
  }

  async #show(session: string, { path, caption }: Received<AgentTools, "upload_image">, signal: AbortSignal) {
    const { sessions, environmentOf, hub } = this.#parts
    using use = await sessions.use(session, signal)
    const bench = new SandboxWorkbench(use, environmentOf)
    const bytes = await bench.read(path, toolLimits.imageBytesMax, signal)
    const mediaType = imageTypeOf(bytes)
    if (mediaType === undefined) throw new Fault("invalid", `${path} is no image that a page could show`)
    const file = { type: "file" as const, name: path.split("/").at(-1) ?? "image", mediaType, path }
    const words = caption === undefined ? [] : [{ type: "text" as const, text: caption }]
    return { messageId: hub.of(session).show([file, ...words]).id }
  }
}

interface Read {
  readonly number: number
  readonly from: string
  readonly text: string
  readonly at: string
}

function letterOf({ seq, role, parts, createdAt }: Message): Read {
  const text = parts
    .map((part) => (part.type === "text" ? part.text : part.type === "error" ? part.message : ""))
    .join("")
  return { number: seq, from: role, text, at: createdAt }
}

/** As many as an answer holds; one alone that is too long is shown as its beginning. */
function fitting(read: readonly Read[]): Read[] {
  let room: number = toolLimits.readCharsMax
  const shown: Read[] = []
  for (const one of read) {
    if (one.text.length > room && shown.length > 0) break
    shown.push(one.text.length > room ? { ...one, text: `${one.text.slice(0, room)}…` } : one)
    room -= one.text.length
  }
  return shown
}
