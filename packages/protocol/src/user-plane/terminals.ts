import { z } from "zod"
import { contract } from "../contract.ts"
import { Ended } from "./processes.ts"
import { Environment } from "./session.ts"

const session = z
  .string()
  .min(1)
  .max(128)
  .meta({ description: "Id or name of the session.", examples: ["fix-login-bug"] })
export const TerminalName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/, "lower-case letters, digits and dashes, at most 32")
  .meta({ id: "TerminalName", examples: ["main"] })
const which = { session, name: TerminalName.default("main") }
const side = z.coerce.number().int().min(1).max(1_000)
const exact = z.int().min(1).max(1_000)
const Size = z.object({ cols: exact, rows: exact })

/** What a new one runs. */
const wishes = {
  cmd: z
    .string()
    .min(1)
    .max(64 * 1024)
    .optional()
    .meta({ description: "Run by `sh -c` in place of a login shell." }),
  env: Environment.default({}),
  cwd: z.string().min(1).max(4095).optional(),
  user: z.string().min(1).max(64).optional(),
}

export const Terminal = z
  .object({
    session: z.string().meta({ examples: ["ses_0123456789abcdefghjk"] }),
    name: TerminalName,
    pid: z.int(),
    startedAt: z.iso.datetime(),
    viewers: z.int().meta({ description: "How many look at it now." }),
    size: Size.optional().meta({ description: "As somebody last said." }),
  })
  .meta({ id: "Terminal", description: "A pty with a name, for everybody who attaches." })
export type Terminal = z.output<typeof Terminal>

const TerminalControl = z
  .discriminatedUnion("op", [
    z.object({ op: z.literal("resize"), ...Size.shape }),
    z.object({ op: z.literal("signal"), name: z.string().regex(/^SIG[A-Z0-9+]{1,10}$/) }),
  ])
  .meta({ id: "TerminalControl" })

const TerminalEvent = z
  .discriminatedUnion("ev", [
    z
      .object({
        ev: z.literal("attached"),
        from: z.int().meta({ description: "The number of the first byte that follows." }),
        dropped: z.int(),
        viewers: z.int(),
        size: Size.optional(),
      })
      .meta({ description: "What is kept of its output follows, then what it says." }),
    z.object({ ev: z.literal("resized"), ...Size.shape }).meta({ description: "Somebody said another size." }),
    z.object({ ev: z.literal("resync"), dropped: z.int() }),
    z.object({ ev: z.literal("exit"), ...Ended.shape }),
  ])
  .meta({ id: "TerminalEvent" })

export const terminalCalls = contract({
  "terminal.open": {
    since: 1,
    scope: "exec",
    http: "POST /v1/sessions/{session}/terminals",
    doc: "The terminal of this name; made when there is none. It goes on without anybody looking.",
    in: z.object({ ...which, ...wishes, cols: side.default(80), rows: side.default(24) }),
    out: z.object({ terminal: Terminal, isNew: z.boolean() }),
  },
  "terminal.list": {
    since: 1,
    scope: "exec",
    http: "GET /v1/sessions/{session}/terminals",
    doc: "The terminals of a session, the oldest first. A session that sleeps has none, and sleeps on.",
    in: z.object({ session }),
    out: z.object({ terminals: z.array(Terminal) }),
  },
  "terminal.attach": {
    since: 1,
    scope: "exec",
    http: "GET /v1/sessions/{session}/terminals/{name}/attach",
    body: "result",
    doc: "Look at a terminal and type into it: what it has said after byte `after`, then what it says. Made when there is none. Leaving does not end it.",
    in: z.object({
      session,
      name: TerminalName,
      ...wishes,
      cols: side.optional().meta({ description: "With `rows`: everybody's size from now on." }),
      rows: side.optional(),
      after: z.coerce.number().int().min(0).default(0),
    }),
    up: TerminalControl,
    down: TerminalEvent,
  },
  "terminal.close": {
    since: 1,
    scope: "exec",
    http: "DELETE /v1/sessions/{session}/terminals/{name}",
    doc: "End a terminal and what runs in it.",
    in: z.object({ session, name: TerminalName }),
    out: z.object({ wasRunning: z.boolean() }),
  },
})
