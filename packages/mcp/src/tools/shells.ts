import { z } from "zod"
import { Chunk } from "@warren/protocol/conversation.ts"
import { Environment } from "@warren/protocol/user-plane/session.ts"
import { howItEnded } from "../command.ts"
import { Excerpt } from "../excerpt.ts"
import { Spill } from "../spill.ts"
import { facts, given, sessionField, text, tool } from "../tool.ts"

const shell = z.string().min(1).max(32).meta({ description: "As open_shell told it." })

const open = tool({
  name: "open_shell",
  title: "Open a shell",
  doc: "A shell that lives between commands: its folder, variables, functions and jobs stay. Use it with run_in_shell and close it when done.",
  kind: "makes",
  in: z.object({
    session: sessionField,
    cwd: z.string().min(1).max(4095).optional(),
    env: Environment.optional(),
    user: z.string().min(1).max(64).optional(),
  }),
  async run(input, { asking }) {
    // Not cancelled half-way: a shell nobody knows of would stay.
    return facts(await asking.anyway().call("shell.open", given(input) as typeof input))
  },
})

const run = tool({
  name: "run_in_shell",
  title: "Run in a shell",
  doc: "Run a command in a shell that was opened before. A command that is ended by its time or by cancelling the call leaves the shell alive.",
  kind: "runs",
  in: z.object({
    session: sessionField,
    shell,
    command: z
      .string()
      .min(1)
      .max(512 * 1024),
    timeoutMs: z
      .int()
      .min(0)
      .max(2 ** 31 - 1)
      .default(120_000)
      .meta({ description: "It is ended after this long; 0: never." }),
    outputBytes: z
      .int()
      .min(256)
      .max(512 * 1024)
      .default(32 * 1024)
      .meta({
        description: "Bytes of output to show: its beginning and its end. Of more, a file is told for read_file.",
      }),
  }),
  async run({ session, shell: name, command, timeoutMs, outputBytes }, { asking }) {
    const output = new Excerpt(outputBytes)
    await using spill = new Spill(asking, session)
    const early: Buffer[] = []
    await using running = await asking.stream("shell.run", { session, shell: name, cmd: command, timeoutMs })
    for (let item = await running.next(); item !== undefined; item = await running.next()) {
      if (!(item instanceof Chunk)) {
        const isKept = await spill.end()
        const rest = { session, path: spill.path, offset: output.headBytes }
        const pointer = isKept ? `: read_file ${JSON.stringify(rest)}` : ", and were not kept"
        const shown = output.text(`[${output.left} bytes are left out here${pointer}]`)
        const { ev: _, isNew: _isNew, cwd, ...end } = item
        const leftOut = output.left > 0 ? { leftOut: { bytes: output.left, ...(isKept ? rest : {}) } } : {}
        return {
          ...text(shown === "" ? "(no output)" : shown, `${howItEnded(end)} in ${cwd}`),
          structuredContent: { ...end, cwd, output: shown, outputBytes: output.bytes, ...leftOut },
        }
      }
      output.add(item.bytes)
      // Held here until it is known to be too much: most output is not.
      early.push(Buffer.from(item.bytes))
      if (output.left > 0) for (const piece of early.splice(0)) await spill.add(piece)
    }
    return facts({ shell: name, isOver: true })
  },
})

const close = tool({
  name: "close_shell",
  title: "Close a shell",
  doc: "End a shell and what runs in it.",
  kind: "changes",
  in: z.object({ session: sessionField, shell }),
  async run(input, { asking }) {
    await asking.call("shell.close", input)
    return facts({ closed: input.shell })
  },
})

const list = tool({
  name: "list_shells",
  title: "List shells",
  doc: "The shells that are open in a session.",
  kind: "reads",
  in: z.object({ session: sessionField }),
  async run(input, { asking }) {
    return facts(await asking.call("shell.list", input))
  },
})

export const shellTools = [open, run, close, list]
