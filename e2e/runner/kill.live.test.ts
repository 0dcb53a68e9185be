import { randomInt } from "node:crypto"
import { setTimeout as pause } from "node:timers/promises"
import { launcherPids } from "@warren/drivers/oci/testing/invariants.ts"
import { randomFrom } from "@warren/drivers/oci/testing/random.ts"
import { afterAll, describe, expect, it } from "vitest"
import { Day, folder } from "./day.ts"
import { record } from "../security/results.ts"
import { Home } from "./home.ts"
import { lastingLeaks, lookAt } from "./machine.ts"
import { mayHold, misfits, mustRunOn, Notebook, settle, type Files, type SessionNote } from "./notebook.ts"
import { Runner } from "./runner.ts"
import { Tally } from "./tally.ts"
import type { SessionData, Talk } from "./talk.ts"

const kills = Number(process.env["WARREN_KILLS"] ?? 30)
const seed = Number(process.env["WARREN_SEED"] ?? randomInt(2 ** 31))
const workers = 3
/** Within this a runner that was just started says how it is. */
const statusMs = 2_000
const dayMs = 500
/** How often the next one is killed, too, while it starts and recovers; once more as often, and so on. */
const earlyShare = 0.3
/** A runner needs less than this to be ready, where nothing else goes on. */
const earlyMs = 800
const pool = { WARREN_POOL_LEAST: "2", WARREN_POOL_MB: "6" }

describe.skipIf(process.getuid?.() !== 0)("a runner that is killed", () => {
  const home = new Home()
  afterAll(() => home[Symbol.asyncDispose]())

  it(`loses nothing it acknowledged, ${kills} times (seed ${seed})`, { timeout: kills * 10_000 }, async () => {
    const random = randomFrom(seed)
    const book = new Notebook()
    const told = new Tally()
    let count = 0
    const names = (): string => `d${++count}`
    for (let round = 0; round < kills; round++) {
      const where = `round ${round} of seed ${seed}`
      for (; random() < earlyShare; told.early++) await Runner.killedEarly(home, pool, random() * earlyMs)
      await using runner = await Runner.start(home, pool)
      await inspect(runner, book, where, told, random)
      const day = new Day(runner.talk, book, random, names)
      const living = day.live(workers)
      await pause(random() * dayMs)
      const wasLauncherFirst = await killAll(runner, home, random, told)
      await living
      // A launcher that is killed under a request fails it, and only that.
      const refused = wasLauncherFirst
        ? day.failures.filter((words) => !words.includes(": unavailable "))
        : day.failures
      expect(refused, where).toEqual([])
      told.add(day, book)
    }
    await using last = await Runner.start(home, pool)
    await inspect(last, book, `the end of seed ${seed}`, told, () => 0)
    for (const { id } of await last.talk.sessions()) await last.talk.call("session.delete", { id })
    for (const { id } of await last.talk.snapshots()) await last.talk.call("snapshot.delete", { id })
    await last.stop()
    // With no pool nothing at all is left.
    await using empty = await Runner.start(home)
    expect(await lastingLeaks(home)).toEqual([])
    await expect.poll(() => lookAt(home).ledger, { timeout: 20_000 }).toEqual([])
    expect(lookAt(home)).toMatchObject({ folders: [], egress: [], groups: [], ledger: [], sessions: [], snapshots: [] })
    await empty.stop()
    expect(await lastingLeaks(home, false)).toEqual([])
    console.log(`kill: ${kills} kills, ${told.early} more of runners that recovered, seed ${seed}, ${told.words()}`)
    const slowest = Math.round(Math.max(...told.readyMs))
    record("kills-runner", { cases: kills + told.early, seed, whileRecovering: told.early, readyMsMax: slowest })
  })

  /** Everything acknowledged is there, and nothing is there that nobody knows of. */
  async function inspect(runner: Runner, book: Notebook, where: string, told: Tally, random: () => number) {
    const { talk } = runner
    await talk.call("health.check", {}, { timeoutMs: statusMs })
    told.readyMs.push(runner.readyMs)
    const [sessions, snapshots] = [await talk.sessions(), await talk.snapshots()]
    expect(misfits(book, sessions, snapshots), where).toEqual([])
    const found = new Map(sessions.map((session) => [session.name, session]))
    for (const note of book.sessions.values()) {
      const session = found.get(note.name)
      if (session && mustRunOn(note, session)) told.programs += await programsRun(talk, note, session, where)
    }
    settle(book, sessions, snapshots)
    for (const note of book.sessions.values()) {
      // Looking wakes it: most that sleep, and about which there is no doubt, are let sleep.
      const isAwake = note.state === "running"
      if (isAwake || note.doing || random() < 0.3) told.files += await checkFiles(talk, note, where)
      note.doing = undefined
    }
    expect(await lastingLeaks(home), where).toEqual([])
  }
})

async function programsRun(talk: Talk, note: SessionNote, session: SessionData, where: string): Promise<number> {
  if (note.programs.length === 0 && !note.shell) return 0
  const about = `${note.name} (${session.state}), ${where}`
  for (const { pid, said } of note.programs) {
    expect(await talk.call("process.status", { session: note.name, pid }), about).toMatchObject({ isRunning: true })
    const { text } = await talk.call("process.readStdout", {
      session: note.name,
      pid,
      waitMs: 5_000,
      limit: said.length,
    })
    expect(text, about).toBe(said)
  }
  if (note.shell) {
    const { text } = await talk.runInShell(note.name, note.shell.name, "echo $KEPT")
    expect(text.trim(), about).toBe(note.shell.value)
  }
  // Asking woke it.
  Object.assign(session, await talk.call("session.get", { id: note.name }))
  return note.programs.length
}

async function checkFiles(talk: Talk, note: SessionNote, where: string): Promise<number> {
  if (note.state === "stopped" || note.state === "failed") await talk.call("session.restore", { id: note.name })
  const cmd = `cd ${folder} 2>/dev/null || exit 0; for f in * .[!.]*; do [ -e "$f" ] || continue; printf '%s\\001' "$f"; cat "$f"; printf '\\002'; done`
  const { text, exitCode } = await talk.run(note.name, cmd)
  expect(exitCode, `${note.name}, ${where}`).toBe(0)
  const pairs = text
    .split("\u0002")
    .filter(Boolean)
    .map((one) => one.split("\u0001"))
  const held = new Map(pairs.map(([name = "", content = ""]) => [`${folder}/${name}`, content]))
  const allowed = mayHold(note)
  const fitting = allowed.find((files) => show(files) === show(held))
  expect(fitting && show(fitting), `the files of ${note.name}, ${note.doing?.op}, ${where}`).toBe(show(held))
  note.files = held
  note.state = "running"
  return held.size
}

function show(files: Files): string {
  return [...files]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, text]) => `${path}: ${text.length} ${text}`)
    .join("\n")
}

/** Half of the time its launcher goes, too: a moment before it, or just after. */
async function killAll(runner: Runner, home: Home, random: () => number, told: Tally): Promise<boolean> {
  const order = random()
  const launchers = launcherPids(home.driverRoot)
  if (order < 0.25) {
    for (const pid of launchers) tryKill(pid)
    await pause(random() * 20)
  }
  const killed = runner.kill()
  if (order >= 0.25 && order < 0.5) for (const pid of launchers) tryKill(pid)
  if (order < 0.5) told.launchers++
  await killed
  return order < 0.25
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // It has ended by itself.
  }
}
