import { noSession, session } from "./facts.ts"
import type { Chapter, Step } from "./story.ts"

const files = { "/workspace/note": "one", "/workspace/paper": "two" }

/** What a session can go through whose sandbox is a confined process. Names begin with `p`. */
export function confinedChapter(p: string): Chapter {
  const [a, b] = [`${p}a`, `${p}b`]
  const about = `session:${a}`
  const cast = { pid: 0 }
  const program = () => ({ pid: cast.pid, said: "going on" })
  const steps: Step[] = [
    {
      name: "create",
      act: (talk) => talk.call("session.create", { name: a }),
      after: { [about]: session(a, ["running"]) },
    },
    {
      name: "exec",
      act: async (talk) => {
        const { exitCode } = await talk.run(a, 'cd "$WORKSPACE" && printf one > draft && mv draft note')
        if (exitCode !== 0) throw new Error(`the command ended with ${exitCode}`)
      },
      after: { [about]: session(a, ["running"], { files: { "/workspace/note": "one" } }) },
    },
    {
      name: "file",
      act: (talk) => talk.write(a, "/workspace/paper", "two"),
      after: { [about]: session(a, ["running"], { files }) },
    },
    {
      name: "stop",
      act: (talk) => talk.call("session.stop", { id: a, graceMs: 0 }),
      after: { [about]: session(a, ["stopped"]) },
    },
    {
      name: "restore what was stopped",
      act: (talk) => talk.call("session.restore", { id: a }),
      after: { [about]: session(a, ["running"], { files }) },
      between: { [about]: session(a, ["hibernated"]) },
    },
    {
      name: "detached",
      act: async (talk) => {
        const cmd = "printf 'going on'; exec sleep 100000"
        cast.pid = (await talk.call("process.spawn", { session: a, cmd })).pid
      },
      after: { [about]: session(a, ["running"], { files, program }) },
    },
    {
      name: "create another",
      act: (talk) => talk.call("session.create", { name: b }),
      after: { [`session:${b}`]: session(b, ["running"]) },
    },
    {
      name: "hibernate",
      act: (talk) => talk.call("session.hibernate", { id: b }),
      after: { [`session:${b}`]: session(b, ["hibernated"]) },
    },
    ...[a, b].map((name): Step => ({
      name: `delete ${name.slice(p.length)}`,
      act: (talk) => talk.call("session.delete", { id: name }),
      after: { [`session:${name}`]: noSession(name) },
    })),
  ]
  return { name: "confined", first: { [about]: noSession(a), [`session:${b}`]: noSession(b) }, steps }
}
