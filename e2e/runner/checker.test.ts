import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { leaks, type Machine } from "./machine.ts"
import { mayBe, misfits, Notebook, settle, type Doing, type SessionNote, type State } from "./notebook.ts"
import type { SessionData } from "./talk.ts"

const states: readonly State[] = ["running", "paused", "hibernated", "stopped"]
const doings: readonly (Doing | undefined)[] = [
  undefined,
  ...(["create", "use", "fork", "snapshot", "pause", "resume", "hibernate", "restore", "stop", "delete"] as const).map(
    (op) => ({ op }),
  ),
  { op: "write", path: "/a", text: "b" },
  { op: "rollback", files: new Map() },
]
const found = (name: string, state: State): SessionData => ({ name, state }) as SessionData

/** What finds nothing proves nothing: the kill test leans on these. */
describe("the checker of kills", () => {
  it("accepts what may be, and nothing else", () => {
    const any = fc.constantFrom(...states, "failed" as const, "restoring" as const, "absent" as const)
    fc.assert(
      fc.property(fc.constantFrom(...states), fc.constantFrom(...doings), any, (state, doing, is) => {
        const note: SessionNote = { name: "a", state, doing, files: new Map(), programs: [] }
        const book = new Notebook()
        book.sessions.set("a", note)
        const sessions = is === "absent" ? [] : [found("a", is)]
        expect(misfits(book, sessions, []).length === 0).toBe(mayBe(note).includes(is))
        settle(book, sessions, [])
        expect(book.sessions.get("a")?.state).toBe(is === "absent" ? undefined : is)
      }),
    )
  })

  it("never takes a state on the way, or a failure, for an answer", () => {
    for (const state of states)
      for (const doing of doings)
        for (const wrong of ["failed", "starting", "restoring", "hibernating", "stopping"] as const)
          expect(mayBe({ name: "a", state, doing, files: new Map(), programs: [] })).not.toContain(wrong)
  })

  it("notices what nobody asked for", () => {
    const snapshot = { id: "snp_1" } as never
    expect(misfits(new Notebook(), [found("a", "running")], [snapshot])).toHaveLength(2)
  })

  const clean: Machine = {
    ledger: [
      { id: "sbx_1", owner: "ses_1", network: "proxy" },
      { id: "sbx_2", owner: "pool", network: "proxy" },
    ],
    sessions: [{ id: "ses_1", state: "running", sandbox: "sbx_1" }],
    snapshots: [{ id: "snp_1", state: "ready" }],
    leased: ["sbx_1"],
    folders: ["sbx_1", "sbx_2", "snp_1"],
    egress: ["sbx_1", "sbx_2"],
    groups: ["sbx_1", "sbx_2"],
    alive: ["sbx_1", "sbx_2"],
    ...{ strayMounts: [], volumes: 1, loops: 1, launchers: 1, scratch: [] },
  }
  it.each<[string, Partial<Machine>]>([
    ["a sandbox nobody wrote down", { folders: [...clean.folders, "sbx_3"] }],
    ["a sandbox that is gone", { folders: ["sbx_2", "snp_1"] }],
    ["a sandbox of a session that is gone", { sessions: [] }],
    ["a session that has another", { sessions: [{ id: "ses_1", state: "running", sandbox: "sbx_9" }] }],
    ["a process of a session that sleeps", { sessions: [{ id: "ses_1", state: "hibernated", sandbox: "sbx_1" }] }],
    ["a session without a process", { alive: ["sbx_2"] }],
    ["a group", { groups: [...clean.groups, "sbx_3"] }],
    ["a way out", { egress: [...clean.egress, "sbx_3"] }],
    ["leases", { leased: ["sbx_3"] }],
    ["a snapshot on disk", { folders: [...clean.folders, "snp_2"] }],
    ["a snapshot that is gone", { folders: ["sbx_1", "sbx_2"] }],
    ["half a snapshot", { snapshots: [...clean.snapshots, { id: "snp_2", state: "making" }] }],
    ["a mount", { strayMounts: ["/x"] }],
    ["a loop device", { loops: 2 }],
    ["a launcher", { launchers: 2 }],
    ["scratch", { scratch: ["x"] }],
  ])("sees %s", (_, changes) => {
    expect(leaks(clean, true)).toEqual([])
    expect(leaks({ ...clean, ...changes }, true)).not.toEqual([])
  })
})
