import { spawn } from "node:child_process"
import { once } from "node:events"
import { copyFileSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { pidsIn } from "@warren/drivers/oci/testing/invariants.ts"
import { describe, expect, it } from "vitest"
import { dist, Home } from "./home.ts"
import { lastingLeaks } from "./machine.ts"
import { refusal, Runner } from "./runner.ts"

/** Another process that holds the database until it is told to let go. */
async function lock(path: string): Promise<AsyncDisposable> {
  const program = `const s = new (require("libsql"))(process.argv[1]); s.exec("BEGIN EXCLUSIVE"); console.log("held")
    process.stdin.on("end", () => s.close()).resume()`
  const child = spawn(process.execPath, ["-e", program, path], { cwd: dist, stdio: ["pipe", "pipe", "inherit"] })
  await once(child.stdout, "data")
  return {
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, "exit")
      child.stdin.end()
      await ended
    },
  }
}

describe.skipIf(process.getuid?.() !== 0)("a runner whose database", () => {
  it("is locked by another says so, and works when it is free again", { timeout: 120_000 }, async () => {
    await using home = new Home()
    await using runner = await Runner.start(home)
    const { talk } = runner
    const { id } = await talk.call("session.create", { name: "before" })
    {
      await using _ = await lock(home.database)
      await expect(talk.call("session.create", { name: "during" })).rejects.toMatchObject({ code: "unavailable" })
      await expect(talk.call("session.hibernate", { id })).rejects.toMatchObject({ code: "unavailable" })
      // Whoever waits for it holds nobody else up for long.
      const waiting = talk.call("session.create", { name: "during" }).catch(() => undefined)
      await talk.call("health.check", {}, { timeoutMs: 3_000 })
      await waiting
      // What only reads, and what has nothing to write, goes on.
      expect(await talk.call("session.get", { id })).toMatchObject({ state: "running" })
      expect(await talk.run(id, "echo on")).toMatchObject({ text: "on\n" })
    }
    expect(await talk.run(id, "echo on")).toMatchObject({ text: "on\n" })
    expect(await talk.call("session.hibernate", { id })).toMatchObject({ state: "hibernated" })
    expect(await talk.run(id, "echo on")).toMatchObject({ text: "on\n" })
    const { id: after } = await talk.call("session.create", { name: "during" })
    for (const one of [id, after]) await talk.call("session.delete", { id: one })
    expect(await lastingLeaks(home)).toEqual([])
  })

  it("is locked in the middle of every move ends in a state it can go on from", { timeout: 240_000 }, async () => {
    await using home = new Home()
    await using runner = await Runner.start(home)
    const { talk } = runner
    for (const op of ["hibernate", "stop", "rollback"] as const) {
      const { id } = await talk.call("session.create", {})
      await talk.write(id, "/home/user/note", "kept")
      const snapshot = await talk.call("snapshot.create", { session: id })
      // Ending takes a second, and by then the database is locked.
      await talk.run(id, "(trap '' TERM; touch /tmp/on; sleep 1000) & until [ -e /tmp/on ]; do :; done")
      const asked =
        op === "rollback"
          ? talk.call("session.rollback", { id, snapshot: snapshot.id })
          : talk.call(`session.${op}`, { id, ...(op === "stop" ? { graceMs: 1_000 } : {}) })
      asked.catch(() => undefined)
      await expect.poll(async () => (await talk.call("session.get", { id })).state).not.toBe("running")
      {
        await using _ = await lock(home.database)
        await asked.catch((failure: unknown) =>
          expect(failure).toMatchObject({ code: expect.stringMatching(/^(unavailable|not_found)$/) as string }),
        )
      }
      const left = (await talk.sessions()).find((one) => one.id === id)
      if (left) {
        if (left.state !== "running") await talk.call("session.restore", { id })
        expect(await talk.read(id, "/home/user/note"), op).toBe("kept")
        await talk.call("session.delete", { id })
      }
      await talk.call("snapshot.delete", { id: snapshot.id })
      expect(await lastingLeaks(home), op).toEqual([])
    }
  })

  it.each([
    ["is cut in half", (path: string) => truncateSync(path, Math.floor(statSync(path).size / 8192) * 4096)],
    ["is cut to nothing", (path: string) => truncateSync(path, 0)],
    ["is gone", (path: string) => rmSync(path)],
    ["is overwritten at its beginning", (path: string) => scribble(path, 0)],
    ["is overwritten in its middle", (path: string) => scribble(path, Math.floor(statSync(path).size / 2))],
  ])("%s refuses to start, says why, and touches nothing", { timeout: 120_000 }, async (_, spoil) => {
    await using home = new Home()
    const kept = `${home.path}/kept.db`
    const id = await (async () => {
      await using runner = await Runner.start(home)
      const { talk } = runner
      const session = await talk.call("session.create", { name: "lasting" })
      for (let n = 0; n < 30; n++)
        await talk
          .call("session.create", { labels: { n: String(n) }, network: { mode: "none" } })
          .then((one) => talk.call("session.stop", { id: one.id, graceMs: 0 }))
      await talk.write(session.id, "/home/user/note", "kept")
      await talk.call("snapshot.create", { session: session.id })
      await talk.call("process.spawn", { session: session.id, cmd: "exec sleep 100000" })
      return session.id
    })()
    const before = pidsIn(home.driverRoot)
    expect(before.length).toBeGreaterThan(1)
    copyFileSync(home.database, kept)
    spoil(home.database)
    const spoiled = contentOf(home.database)
    expect(await refusal(home)).toMatch(/database/)
    expect(pidsIn(home.driverRoot)).toEqual(before)
    if (spoiled.length > 0) expect(contentOf(home.database).equals(spoiled)).toBe(true)
    // With the backup everything is as it was.
    for (const end of ["-wal", "-shm"]) rmSync(home.database + end, { force: true })
    copyFileSync(kept, home.database)
    await using again = await Runner.start(home)
    expect(await again.talk.call("health.check", {})).toMatchObject({ found: { adopted: 1, lost: 0 } })
    expect(await again.talk.read(id, "/home/user/note")).toBe("kept")
    expect((await again.talk.snapshots()).length).toBe(1)
    expect(pidsIn(home.driverRoot)).toEqual(before)
    expect(await lastingLeaks(home)).toEqual([])
  })
})

function scribble(path: string, from: number): void {
  const bytes = readFileSync(path)
  bytes.fill("nonsense ", from, from + 4096 * 4)
  writeFileSync(path, bytes)
}

function contentOf(path: string): Buffer {
  return statSync(path, { throwIfNoEntry: false }) ? readFileSync(path) : Buffer.alloc(0)
}
