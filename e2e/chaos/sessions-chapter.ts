import type { Talk } from "../runner/talk.ts"
import { listed, noSession, session } from "./facts.ts"
import type { Chapter, Fact, Step } from "./story.ts"

const note = "/home/user/note"
const paper = "/home/user/paper"

/** Everything a session can go through. Names begin with `p`. */
export function sessionsChapter(p: string): Chapter {
  const [a, b, c] = [`${p}a`, `${p}b`, `${p}c`]
  const keyed = `${p}keyed`
  const cast = { snapshot: "", pid: 0 }
  const program = () => ({ pid: cast.pid, said: "going on" })
  const files = { [note]: "one", [paper]: "two" }
  const aRuns = session(a, ["running"], { files, program })
  const bAsBefore = { files: { [note]: "one" } }
  const steps: Step[] = [
    {
      name: "create",
      act: (talk) => talk.call("session.create", { name: a, labels: { of: "first" } }),
      after: { [`session:${a}`]: session(a, ["running"]) },
    },
    {
      name: "exec",
      act: (talk) => exec(talk, a, `printf one > ~/draft && mv ~/draft ${note}`),
      after: { [`session:${a}`]: session(a, ["running"], { files: { [note]: "one" } }) },
    },
    {
      name: "file",
      act: (talk) => talk.write(a, paper, "two"),
      after: { [`session:${a}`]: session(a, ["running"], { files }) },
    },
    {
      name: "detached",
      act: async (talk) => {
        const cmd = "printf 'going on'; exec sleep 100000"
        cast.pid = (await talk.call("process.spawn", { session: a, cmd })).pid
      },
      after: { [`session:${a}`]: aRuns },
    },
    {
      name: "snapshot",
      act: (talk) => talk.call("snapshot.create", { session: a, name: `${p}s` }),
      after: { [`snapshot:${p}s`]: listed("snapshot", `${p}s`, true) },
    },
    {
      name: "create from the snapshot",
      act: async (talk) => {
        cast.snapshot = (await talk.snapshots()).find(({ name }) => name === `${p}s`)?.id ?? ""
        await talk.call("session.create", { name: b, from: cast.snapshot })
      },
      after: { [`session:${b}`]: session(b, ["running"], { files }) },
    },
    {
      name: "change",
      act: (talk) => exec(talk, b, `printf other > ~/draft && mv ~/draft ${note}`),
      after: { [`session:${b}`]: session(b, ["running"], { files: { [note]: "other" } }) },
    },
    {
      name: "rollback",
      act: (talk) => talk.call("session.rollback", { id: b, snapshot: cast.snapshot }),
      after: { [`session:${b}`]: session(b, ["running"], bAsBefore) },
      between: { [`session:${b}`]: session(b, ["hibernated"]) },
    },
    {
      name: "stop",
      act: (talk) => talk.call("session.stop", { id: b, graceMs: 0 }),
      after: { [`session:${b}`]: session(b, ["stopped"]) },
    },
    {
      name: "restore what was stopped",
      act: (talk) => talk.call("session.restore", { id: b }),
      after: { [`session:${b}`]: session(b, ["running"], bAsBefore) },
      between: { [`session:${b}`]: session(b, ["hibernated"]) },
    },
    {
      name: "fork",
      act: (talk) => talk.call("session.fork", { id: a, name: c, count: 1 }),
      after: { [`session:${c}`]: session(c, ["running"], { files }) },
    },
    {
      name: "pause",
      act: (talk) => talk.call("session.pause", { id: a }),
      after: { [`session:${a}`]: session(a, ["paused"]) },
    },
    {
      name: "resume",
      act: (talk) => talk.call("session.resume", { id: a }),
      after: { [`session:${a}`]: aRuns },
    },
    {
      name: "hibernate",
      act: (talk) => talk.call("session.hibernate", { id: c }),
      after: { [`session:${c}`]: session(c, ["hibernated"]) },
    },
    {
      name: "restore what slept",
      act: (talk) => talk.call("session.restore", { id: c }),
      after: { [`session:${c}`]: session(c, ["running"], { files }) },
    },
    {
      name: "update",
      act: (talk) => talk.call("session.update", { id: a, labels: { of: "second" } }),
      after: { [`session:${a}`]: session(a, ["running"], { files, program, label: "second" }) },
    },
    {
      name: "create with a key",
      act: (talk) => talk.call("session.create", { labels: { of: keyed } }, { key: keyed }),
      isRepeated: true,
      after: { [`session:${keyed}`]: labelled(keyed, 1) },
    },
    {
      name: "delete by label",
      act: async (talk) => {
        for (const { id, labels } of await talk.sessions())
          if (labels["of"] === keyed) await talk.call("session.delete", { id })
      },
      after: { [`session:${keyed}`]: labelled(keyed, 0) },
    },
    {
      name: "delete the snapshot",
      act: (talk) => talk.call("snapshot.delete", { id: cast.snapshot }),
      after: { [`snapshot:${p}s`]: listed("snapshot", `${p}s`, false) },
    },
    ...[a, b, c].map((name): Step => ({
      name: `delete ${name.slice(p.length)}`,
      act: (talk) => talk.call("session.delete", { id: name }),
      after: { [`session:${name}`]: noSession(name) },
    })),
  ]
  const first = {
    ...Object.fromEntries([a, b, c].map((name) => [`session:${name}`, noSession(name)])),
    [`snapshot:${p}s`]: listed("snapshot", `${p}s`, false),
    [`session:${keyed}`]: labelled(keyed, 0),
  }
  return { name: "sessions", first, steps }
}

/** How many sessions have the label: names cannot tell, where nobody gave one. */
function labelled(label: string, count: number): Fact {
  return async (talk) => {
    const found = (await talk.sessions()).filter(({ labels }) => labels["of"] === label)
    const isSo = found.length === count && found.every(({ state }) => state === "running")
    return isSo ? undefined : `there are ${found.length}: ${found.map(({ state }) => state).join(", ")}`
  }
}

async function exec(talk: Talk, name: string, cmd: string): Promise<void> {
  const { exitCode } = await talk.run(name, cmd)
  if (exitCode !== 0) throw new Error(`the command ended with ${exitCode}`)
}
