import { Fault } from "@warren/base/fault.ts"
import { flag, type FlagValues } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { withRunner, type Desk } from "../desk.ts"
import { ensureRunner } from "../lifecycle/start-plan.ts"
import { exitCodeOf, remarkOn, unstartedExitCode } from "../program/ended.ts"
import { runProgram } from "../program/program.ts"
import { Kept, toTerminal } from "../program/sink.ts"
import type { Runner } from "../runner/runner.ts"
import { table } from "../terminal/table.ts"
import { ageText } from "../terminal/units.ts"
import { verb } from "../verb.ts"
import { environmentOf, given, wishesOf, wishFlags } from "./wishes.ts"

/** What one answer in JSON holds of a program's output; one that says more is ended. */
const keptBytesMax = 16 * 1024 * 1024
/** A session whose `run` was killed is left alone: it does not go on using the machine. */
const abandonedMs = 60_000

const programFlags = {
  tty: flag.on("Give it a terminal even if there is none here.", { short: "t" }),
  noTty: flag.on("Give it no terminal even if there is one here.", { short: "T" }),
  noStdin: flag.on("Give it an empty input.", { short: "n" }),
  cwd: flag.text("FOLDER", "The folder it starts in.", { short: "w" }),
  as: flag.text("ACCOUNT", "Who it runs as inside (`user`, `root`).", { short: "u" }),
  timeout: flag.duration("End it after this long"),
}
type ProgramFlags = FlagValues<typeof programFlags>

/** The login shell of whoever is inside: bash where there is one. */
const loginShell = ["sh", "-c", 'exec "$(command -v bash || command -v sh)" -l']

const run = verb({
  name: "run",
  group: "Programs",
  doc: "Run a command in a new session, which is deleted afterwards unless --keep. Without a command: a shell.",
  examples: [
    "warren run -- sh -c 'echo $((6*7))'",
    "warren run --image debian:12 --net none -- make test",
    "warren run --workspace website --allow registry.npmjs.org -- npm install",
  ],
  flags: {
    ...wishFlags,
    ...programFlags,
    keep: flag.on("Keep the session."),
    rm: flag.on("Delete the session afterwards (it is what happens anyway)."),
  },
  words: { command: word.command("What to run; its exit code becomes ours.", { isOptional: true }) },
  async run({ flags, words }, desk) {
    const wishes = await wishesOf(flags, desk)
    await ensureRunner(desk)
    return withRunner(desk, async (runner) => {
      const leftAlone = flags.keep ? {} : { idle: { afterMs: abandonedMs, action: "stop" as const } }
      const session = await runner.call("session.create", { ...leftAlone, ...wishes })
      if (flags.keep) desk.output.note(`The session is ${session.name}.`)
      try {
        const argv = words.command.length > 0 ? words.command : loginShell
        return await runInSession(runner, desk, { session: session.id, name: session.name, argv, flags, env: {} })
      } finally {
        if (!flags.keep) await runner.callAnyway("session.delete", { id: session.id })
      }
    })
  },
})

const exec = verb({
  name: "exec",
  group: "Programs",
  doc: "Run a command in a session that is there; one that sleeps wakes up.",
  examples: ["warren exec my-session -- ls -la /workspace", "echo data | warren exec my-session -- wc -c"],
  flags: {
    ...programFlags,
    env: flag.environment("A variable for it"),
    envFile: flag.list("FILE", "Variables, one on each line.", { completes: "file" }),
  },
  words: {
    session: word.one("SESSION", "Id or name of the session.", { completes: "session" }),
    command: word.command("What to run; its exit code becomes ours."),
  },
  async run({ flags, words: { session, command } }, desk) {
    const env = await environmentOf(flags, desk)
    return withRunner(desk, (runner) =>
      runInSession(runner, desk, { session, name: session, argv: command, flags, env }),
    )
  },
})

const shell = verb({
  name: "shell",
  group: "Programs",
  doc: "A login shell in a session.",
  examples: ["warren shell my-session", "warren shell my-session --as root"],
  flags: programFlags,
  words: { session: word.one("SESSION", "Id or name of the session.", { completes: "session" }) },
  run: ({ flags, words: { session } }, desk) =>
    withRunner(desk, (runner) =>
      runInSession(runner, desk, { session, name: session, argv: loginShell, flags, env: {} }),
    ),
})

const ps = verb({
  name: "ps",
  group: "Programs",
  doc: "What runs in a session.",
  examples: ["warren ps my-session"],
  flags: { all: flag.on("Also what has ended and is still known.", { short: "a" }) },
  words: { session: word.one("SESSION", "Id or name of the session.", { completes: "session" }) },
  async run({ flags, words: { session } }, desk) {
    const { processes } = await withRunner(desk, (runner) => runner.call("process.list", { session }))
    const shown = processes.filter(({ isRunning }) => isRunning || flags.all)
    await desk.output.show(shown, () =>
      table(
        ["PID", "STATE", "AGE", "COMMAND"],
        shown.map(({ pid, isRunning, ended, startedAt, argv, shell: name }) => [
          String(pid),
          isRunning ? "running" : ended ? `ended (${exitCodeOf(ended)})` : "ended",
          ageText(startedAt),
          name === undefined ? argv.join(" ") : `${argv.join(" ")} (shell ${name})`,
        ]),
      ),
    )
  },
})

const kill = verb({
  name: "kill",
  group: "Programs",
  doc: "Send a signal to a program of a session and what it started.",
  examples: ["warren kill my-session 7", "warren kill my-session 7 --signal SIGINT"],
  flags: { signal: flag.text("NAME", "Which one (`SIGTERM`).", { short: "s" }) },
  words: {
    session: word.one("SESSION", "Id or name of the session.", { completes: "session" }),
    pid: word.one("PID", "Its number, as `warren ps` shows it."),
  },
  async run({ flags, words: { session, pid } }, desk) {
    const signal = given({ signal: flags.signal?.replace(/^(?!SIG)/, "SIG") })
    const answer = await withRunner(desk, (runner) => runner.call("process.kill", { session, pid, ...signal }))
    await desk.output.show(answer, () => (answer.wasRunning ? "" : "It had ended already."))
  },
})

export const programVerbs = [run, exec, shell, ps, kill]

interface Asking {
  readonly session: string
  readonly name: string
  readonly argv: readonly string[]
  readonly flags: ProgramFlags
  readonly env: Readonly<Record<string, string>>
}

async function runInSession(runner: Runner, desk: Desk, asking: Asking): Promise<number> {
  const { session, argv, flags, env } = asking
  const { isJson } = desk.output
  const kept = isJson ? new Kept() : undefined
  const input = {
    session,
    argv: [...argv],
    env: { ...env },
    ...given({ cwd: flags.cwd, user: flags.as, timeoutMs: flags.timeout, outputBytesMax: kept && keptBytesMax }),
  }
  const ended = await runProgram(runner, desk, input, {
    hasTerminal: !flags.noTty && (flags.tty || (desk.terminal.isInteractive && !isJson)),
    hasInput: !flags.noStdin,
    sink: kept ?? toTerminal(desk.terminal),
  }).catch((thrown: unknown) => unstarted(desk, thrown, argv))
  if (typeof ended === "number") return ended
  const { exitCode, signal, reason, durationMs, truncated } = ended
  const about = { session: asking.name, exitCode, signal, reason, durationMs, truncated }
  if (kept) await desk.output.show({ ...about, ...kept.toData() }, () => "")
  const remark = remarkOn(ended)
  if (remark !== undefined) desk.output.note(`warren: ${remark}`)
  return exitCodeOf(ended)
}

/** A program that could not be started ends as it does in a shell, with its reason told. */
function unstarted(desk: Desk, thrown: unknown, argv: readonly string[]): number {
  if (!(thrown instanceof Fault)) throw thrown
  const exitCode = unstartedExitCode(thrown, argv)
  if (exitCode === undefined) throw thrown
  desk.output.fail(thrown)
  return exitCode
}
