import { z } from "zod"
import { Environment } from "@warren/protocol/user-plane/session.ts"
import { howItEnded, runCommand } from "../command.ts"
import { facts, given, sessionField, text, tool } from "../tool.ts"

/** Below what most clients wait for an answer. */
const waitMsDefault = 45_000

export const outputField = z
  .int()
  .min(256)
  .max(512 * 1024)
  .default(32 * 1024)
  .meta({ description: "Bytes of output to show: its beginning and its end. The rest can be read with read_output." })

const how = {
  cwd: z.string().min(1).max(4095).optional().meta({ description: "The folder it starts in." }),
  env: Environment.optional(),
  user: z.string().min(1).max(64).optional().meta({ description: "`user` unless said; `root` where that is allowed." }),
  timeoutMs: z
    .int()
    .min(0)
    .max(2 ** 31 - 1)
    .default(0)
    .meta({ description: "It is ended after this long; 0: never." }),
  waitMs: z.int().min(0).max(3600_000).default(waitMsDefault).meta({
    description: "How long to wait for its end. It then goes on: follow it with read_output. 0: start it only.",
  }),
  outputBytes: outputField,
}

const pid = z.int().min(1).meta({ description: "As run_command told it." })

const run = tool({
  name: "run_command",
  title: "Run a command",
  doc: "Run a shell command in a session and wait for its end: output, then exit code. What takes longer than `waitMs` goes on; cancelling the call ends it. A session that sleeps wakes up.",
  kind: "runs",
  in: z.object({
    session: sessionField,
    command: z
      .string()
      .min(1)
      .max(512 * 1024)
      .meta({ description: "Run by `sh -c`.", examples: ["npm test"] }),
    stdin: z
      .string()
      .max(512 * 1024)
      .optional()
      .meta({ description: "What it reads; nothing unless given." }),
    ...how,
  }),
  run: ({ session, command, stdin, waitMs, outputBytes, ...rest }, bench) =>
    runCommand(
      {
        spawn: { session, argv: merged("sh", "-c", command), ...given(rest) },
        ...(stdin === undefined ? {} : { input: stdin }),
        waitMs,
        outputBytesMax: outputBytes,
      },
      bench,
    ),
})

/** Both outputs into one: two pipes would tell what was said in another order than it was. */
function merged(...argv: string[]): string[] {
  return ["sh", "-c", 'exec "$@" 2>&1', "sh", ...argv]
}

const languages = ["python", "node", "bash"] as const

const code = tool({
  name: "run_code",
  title: "Run code",
  doc: "Run Python, JavaScript (Node) or Bash code in a session, as a program of its own: what it prints, then its exit code.",
  kind: "runs",
  in: z.object({
    session: sessionField,
    language: z.enum(languages),
    code: z
      .string()
      .min(1)
      .max(512 * 1024),
    ...how,
  }),
  run: ({ session, language, code: program, waitMs, outputBytes, ...rest }, bench) =>
    runCommand(
      {
        spawn: { session, argv: merged(...interpreterOf(language, program)), ...given(rest) },
        input: program,
        waitMs,
        outputBytesMax: outputBytes,
      },
      bench,
    ),
})

/** Each reads its program from its input, where it can be as long as it wants. */
function interpreterOf(language: (typeof languages)[number], program: string): string[] {
  if (language === "python") return ["python3", "-u", "-"]
  if (language === "bash") return ["bash", "-s"]
  // An older Node has to be told which of the two kinds of module it is.
  return /^\s*(import|export)\s/m.test(program) ? ["node", "--input-type=module", "-"] : ["node", "-"]
}

const output = tool({
  name: "read_output",
  title: "Read a command's output",
  doc: "What a command has printed after byte `after`, and whether it still runs. With `waitMs` it waits for more. Go on with the `next` of the answer.",
  kind: "reads",
  in: z.object({
    session: sessionField,
    pid,
    after: z.int().min(0).default(0),
    limit: z
      .int()
      .min(1)
      .max(256 * 1024)
      .default(32 * 1024)
      .meta({ description: "At most so many bytes." }),
    waitMs: z.int().min(0).max(25_000).default(0),
  }),
  async run(input, { asking }) {
    const answer = await asking.call("process.readStdout", input)
    const { text: said, next, dropped, isRunning, ended } = answer
    const state = isRunning ? "[it still runs]" : ended ? howItEnded(ended) : "[there is more]"
    const gone = dropped > 0 ? `[${dropped} bytes before this are not kept any more]\n` : ""
    return {
      ...text(gone + said, `${state} next: ${next}`),
      structuredContent: { output: said, next, dropped, isRunning, ...given({ ended }) },
    }
  },
})

const processes = tool({
  name: "list_processes",
  title: "List commands",
  doc: "Commands that were started in a session and are still known, running or ended.",
  kind: "reads",
  in: z.object({ session: sessionField }),
  async run({ session }, { asking }) {
    return facts(await asking.call("process.list", { session }))
  },
})

const input = tool({
  name: "write_input",
  title: "Write to a command",
  doc: "Write text to the standard input of a command that was started with an input (`stdin`) and still reads.",
  kind: "runs",
  in: z.object({
    session: sessionField,
    pid,
    text: z.string().max(512 * 1024),
    isLast: z.boolean().default(false).meta({ description: "Close the input after it." }),
  }),
  async run(asked, { asking }) {
    return facts(await asking.call("process.writeStdin", asked))
  },
})

const kill = tool({
  name: "kill_process",
  title: "End a command",
  doc: "Send a signal to a command and what it started.",
  kind: "changes",
  in: z.object({
    session: sessionField,
    pid,
    signal: z
      .string()
      .regex(/^SIG[A-Z0-9+]{1,10}$/)
      .default("SIGTERM"),
  }),
  async run(asked, { asking }) {
    return facts(await asking.call("process.kill", asked))
  },
})

export const commandTools = [run, code, output, processes, input, kill]
