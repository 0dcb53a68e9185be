import { flag } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { readDuration } from "../arguments/values.ts"
import { Fault } from "@warren/base/fault.ts"
import { withRunner } from "../desk.ts"
import { allPages } from "../runner/pages.ts"
import { table } from "../terminal/table.ts"
import { verb, type Verb } from "../verb.ts"
import { sessionRecord, sessionTable } from "./session-table.ts"
import { given, wishesOf, wishFlags } from "./wishes.ts"

const session = word.one("SESSION", "Id or name of the session.", { completes: "session" })
const states = [
  "starting",
  "running",
  "paused",
  "hibernating",
  "hibernated",
  "restoring",
  "stopping",
  "stopped",
  "failed",
] as const

const create = verb({
  name: "create",
  group: "Sessions",
  doc: "Start a session that stays, and say its name.",
  examples: ["warren create --name fix-login --workspace website", "warren create --key ci-42 --idle 10m:hibernate"],
  flags: {
    ...wishFlags,
    key: flag.text("KEY", "Yours: the session with this key, or a new one."),
    idle: flag.text("TIME[:ACTION]", "When unused this long: `pause`, `hibernate` or `stop` it."),
    snapshotEvery: flag.duration("Make a snapshot by itself every so often"),
  },
  words: {},
  async run({ flags }, desk) {
    const every = flags.snapshotEvery
    const wishes = {
      ...(await wishesOf(flags, desk)),
      ...given({ idle: idleOf(flags.idle), snapshots: every === undefined ? undefined : { everyMs: every } }),
    }
    const { key } = flags
    const made = await withRunner(desk, async (runner) =>
      key === undefined
        ? runner.call("session.create", wishes)
        : (await runner.call("session.getOrCreate", { ...wishes, key })).session,
    )
    await desk.output.show(made, () => made.name)
  },
})

const ls = verb({
  name: "ls",
  group: "Sessions",
  doc: "List sessions, the one made last first.",
  examples: ["warren ls", "warren ls --state running --json"],
  flags: {
    state: flag.choice(states, "Only those in this state."),
    label: flag.pair("Only those with this label."),
    quiet: flag.on("Only names.", { short: "q" }),
  },
  words: {},
  async run({ flags }, desk) {
    const only = given({ state: flags.state, label: flags.label })
    const sessions = await withRunner(desk, (runner) =>
      allPages((page) => runner.call("session.list", { ...page, ...only })),
    )
    await desk.output.show(sessions, () =>
      flags.quiet ? sessions.map(({ name }) => name).join("\n") : sessionTable(sessions, desk.output),
    )
  },
})

const inspect = verb({
  name: "inspect",
  group: "Sessions",
  doc: "Everything about a session.",
  examples: ["warren inspect my-session"],
  flags: { posture: flag.on("Also what is measured about its isolation.") },
  words: { session },
  run: ({ flags, words: { session: id } }, desk) =>
    withRunner(desk, async (runner) => {
      const found = await runner.call("session.get", { id })
      const posture = flags.posture ? await runner.call("session.posture", { id }) : undefined
      await desk.output.show({ ...found, ...given({ posture }) }, () =>
        [sessionRecord(found, desk.output), ...(posture ? [JSON.stringify(posture, null, 2)] : [])].join("\n"),
      )
    }),
})

const denials = verb({
  name: "denials",
  group: "Sessions",
  doc: "What the egress proxy of a session refused.",
  examples: ["warren denials my-session"],
  flags: {},
  words: { session },
  async run({ words: { session: id } }, desk) {
    const { denials: found } = await withRunner(desk, (runner) => runner.call("session.denials", { id }))
    await desk.output.show(found, () =>
      table(
        ["AT", "HOST", "PORT", "WHY"],
        found.map(({ denial: { at, host, port, reason, detail } }) => [at, host, String(port), detail ?? reason]),
      ),
    )
  },
})

const fork = verb({
  name: "fork",
  group: "Sessions",
  doc: "New sessions with the files this one has now. Programs are not copied.",
  examples: ["warren fork my-session", "warren fork my-session 10"],
  flags: { name: flag.text("NAME", "The name of the new one; with several, it is numbered.") },
  words: { session, count: word.optional("COUNT", "How many (1).") },
  async run({ flags, words }, desk) {
    const count = wholeOf(words.count)
    using progress = desk.output.progress()
    progress.say(`Forking ${words.session} …`)
    const { sessions } = await withRunner(desk, (runner) =>
      runner.call("session.fork", { id: words.session, ...given({ count, name: flags.name }) }),
    )
    progress[Symbol.dispose]()
    await desk.output.show(sessions, () => sessions.map(({ name }) => name).join("\n"))
  },
})

const rollback = verb({
  name: "rollback",
  group: "Sessions",
  doc: "The files of a session as they were in a snapshot; its programs end.",
  examples: ["warren rollback my-session snp_0123456789abcdefghjk"],
  flags: {},
  words: { session, snapshot: word.one("SNAPSHOT", "Which snapshot.", { completes: "snapshot" }) },
  async run({ words }, desk) {
    const after = await withRunner(desk, (runner) =>
      runner.call("session.rollback", { id: words.session, snapshot: words.snapshot }),
    )
    await desk.output.show(after, () => `${after.name} is ${after.state}.`)
  },
})

const rm = verb({
  name: "rm",
  group: "Sessions",
  doc: "Delete sessions: everything but their workspaces.",
  examples: ["warren rm my-session", "warren rm $(warren ls -q --state stopped)"],
  flags: {},
  words: { sessions: word.some("SESSION", "Ids or names of sessions.", { completes: "session" }) },
  run: ({ words }, desk) =>
    withRunner(desk, async (runner) => {
      for (const id of words.sessions) {
        await runner.call("session.delete", { id })
        await desk.output.show({ deleted: id }, () => id)
      }
    }),
})

const update = verb({
  name: "update",
  group: "Sessions",
  doc: "Change what can be changed while a session lives.",
  examples: ["warren update my-session --allow github.com", "warren update my-session --ttl 2h --label team=web"],
  flags: {
    name: flag.text("NAME", "A new name."),
    label: flag.pairs("Labels instead of those it has."),
    allow: flag.list("HOST", "Hosts it may reach, instead of those it may now."),
    ttl: flag.duration("It ends this long after it was last used"),
    idle: flag.text("TIME[:ACTION]", "When unused this long: `pause`, `hibernate` or `stop` it."),
  },
  words: { session },
  async run({ flags, words: { session: id } }, desk) {
    const labels = Object.keys(flags.label).length > 0 ? flags.label : undefined
    const network = flags.allow.length > 0 ? { mode: "proxy" as const, allow: [...flags.allow] } : undefined
    const wishes = given({ name: flags.name, labels, network, ttlMs: flags.ttl, idle: idleOf(flags.idle) })
    if (Object.keys(wishes).length === 0)
      throw new Fault("invalid", "nothing to change was given", { hint: "warren update --help" })
    const after = await withRunner(desk, (runner) => runner.call("session.update", { id, ...wishes }))
    await desk.output.show(after, () => sessionRecord(after, desk.output))
  },
})

/** Verbs that move a session from one state to another and have nothing to say but which. */
const moves = {
  pause: "Freeze everything in a session.",
  resume: "Thaw a paused session.",
  hibernate: "Stop a session's programs and keep its files; the next use wakes it.",
  restore: "Start a hibernated, stopped or failed session again, with its files.",
} as const

const moveVerbs: Verb[] = (Object.keys(moves) as (keyof typeof moves)[]).map((name) =>
  verb({
    name,
    group: "Sessions",
    doc: moves[name],
    examples: [`warren ${name} my-session`],
    flags: {},
    words: { session },
    async run({ words: { session: id } }, desk) {
      const after = await withRunner(desk, (runner) => runner.call(`session.${name}`, { id }))
      await desk.output.show(after, () => `${after.name} is ${after.state}.`)
    },
  }),
)

export const sessionVerbs = [create, ls, inspect, update, ...moveVerbs, fork, rollback, denials, rm]

function wholeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > 100) throw new Fault("invalid", `COUNT must be a whole number from 1 to 100, not "${text}"`)
  return count
}

const idleActions = ["pause", "hibernate", "stop"] as const

function idleOf(text: string | undefined): { afterMs: number; action: (typeof idleActions)[number] } | undefined {
  if (text === undefined) return undefined
  const [time = "", name = "hibernate"] = text.split(":")
  const action = idleActions.find((each) => each === name)
  if (!action) throw new Fault("invalid", `--idle: the action is one of ${idleActions.join(", ")}, not "${name}"`)
  return { afterMs: readDuration(time, "--idle"), action }
}
