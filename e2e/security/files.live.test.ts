import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest"
import { ApiSystem } from "../api/system.ts"
import { Canary, filesWith } from "./canary.ts"
import { hostileAddresses, hostileRepositories, makingRepositories } from "./files/git-corpus.ts"
import { preparing, racer } from "./files/racer.ts"
import { sessionVerbs, workspaceVerbs, type FileVerb } from "./files/verbs.ts"
import { record } from "./results.ts"

/** How often each verb is asked for; 30,000 come to a million: `WARREN_FILE_RACES=30000`. */
const tries = Number(process.env["WARREN_FILE_RACES"] ?? 15)
const atOnce = tries > 100 ? 12 : 4
const watchMs = 20

/** `renameat2` is called by its number, which is this one here only. */
describe.skipIf(process.getuid?.() !== 0 || process.arch !== "x64")(
  "files, while a hostile program swaps folders for links",
  { timeout: 3_600_000 },
  () => {
    let system: ApiSystem
    /** Of the sandbox's root, and of the machine. */
    const secret = new Canary()
    const hostSecret = new Canary()
    const outside = mkdtempSync(join(tmpdir(), "warren-outside-"))
    const sessions: Record<string, string> = {}
    let cases = 0
    let gitCases = 0
    let failed = 0
    const tally = { done: 0, refused: 0 }

    const json = async (path: string, body: object, method = "POST"): Promise<Record<string, unknown>> => {
      const answer = await system.fetch(path, { method, body: JSON.stringify(body) })
      const text = await answer.text()
      if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${text}`)
      return JSON.parse(text) as Record<string, unknown>
    }
    const run = async (session: string, cmd: string, user?: string): Promise<string> => {
      const body = { cmd, ...(user === undefined ? {} : { user }) }
      return String((await json(`/v1/sessions/${session}/exec`, body))["stdout"])
    }
    /** One place at a time: each race takes a processor of its own. `base` is as a shell inside reads it. */
    const race = async (session: string, base: string, leadingTo: string): Promise<void> => {
      await run(session, preparing(base, leadingTo))
      await json(`/v1/sessions/${session}/processes`, { argv: ["sh", "-c", `exec perl -e "$0" ${base}`, racer] })
    }
    const endRaces = (session: string): Promise<string> => run(session, "kill $(pgrep perl) || true")
    const ask = async ({ ask: asked }: FileVerb, n: number): Promise<{ status: number; text: string }> => {
      const { method, path, body } = asked(n)
      const text = typeof body === "object" ? JSON.stringify(body) : body
      const cut = new AbortController()
      const answer = await system.fetch(path, {
        method,
        signal: cut.signal,
        ...(text === undefined ? {} : { body: text }),
      })
      if (!answer.headers.get("content-type")?.startsWith("text/event-stream"))
        return { status: answer.status, text: await answer.text() }
      // A watch goes on; what it says at once is enough.
      const first = await Promise.race([
        answer.body?.getReader().read(),
        new Promise<undefined>((done) => setTimeout(() => done(undefined), watchMs)),
      ])
      cut.abort()
      return { status: answer.status, text: Buffer.from(first?.value ?? []).toString() }
    }
    const raced = async (verb: FileVerb): Promise<void> => {
      let next = 0
      const worker = async (): Promise<void> => {
        while (next < tries) judge(verb.name, await ask(verb, next++))
      }
      await Promise.all(Array.from({ length: atOnce }, worker))
    }
    /** Some find the folder and some the link: otherwise nothing was raced for. */
    const racedAll = async (verbs: readonly FileVerb[]): Promise<void> => {
      const { done, refused } = tally
      for (const verb of verbs) await raced(verb)
      expect(Math.min(tally.done - done, tally.refused - refused)).toBeGreaterThan(tries / 10)
    }
    const judge = (name: string, { status, text }: { status: number; text: string }): void => {
      cases++
      const found = secret.in(text) ?? hostSecret.in(text)
      const isRight = status < 500 && found === undefined && !text.includes("only-outside")
      if (!isRight) expect([name, status, found, text.slice(0, 2_000)]).toEqual([name, "less than 500", undefined, ""])
      if (status < 300) tally.done++
      else tally.refused++
    }
    /** What may not change, whatever is done inside. */
    const outsideNow = (): unknown => {
      const names = readdirSync(outside, { recursive: true }).map(String).toSorted()
      return names.map((name) => {
        const { mtimeMs, ctimeMs, mode, uid, size } = lstatSync(join(outside, name))
        return { name, mtimeMs, ctimeMs, mode, uid, size }
      })
    }
    const privately = (session: string): Promise<string> =>
      run(session, "find /root/kept -printf '%p %m %u %s %T@ %C@\\n' | sort; cat /root/kept/file", "root")

    beforeAll(async () => {
      mkdirSync(join(outside, "sub"))
      writeFileSync(join(outside, "file"), hostSecret.text)
      writeFileSync(join(outside, "sub", "only-outside"), "x")
      // Anybody of the machine may: what keeps a sandbox out is not that.
      for (const name of ["", "file", "sub", "sub/only-outside"]) chmodSync(join(outside, name), 0o777)
      system = await ApiSystem.start()
      await json("/v1/workspaces", { name: "raced" })
      const quiet = { network: { mode: "none" } }
      sessions["oci"] = String((await json("/v1/sessions", { ...quiet, name: "oci", workspace: "raced" }))["id"])
      const kept = `mkdir -p /root/kept/sub && echo ${secret.text} > /root/kept/file && echo > /root/kept/sub/only-outside && chmod -R go= /root/kept /root`
      await run(sessions["oci"], kept, "root")
    }, 120_000)
    afterEach(({ task }) => void (failed += task.result?.state === "fail" ? 1 : 0))
    afterAll(async () => {
      record("git-corpus", {
        cases: gitCases,
        bad: failed,
        addresses: hostileAddresses.length,
        repositories: Object.keys(hostileRepositories).length,
      })
      record("file-races", {
        cases,
        bad: failed,
        verbs: 46,
        triesEach: tries,
        done: tally.done,
        refused: tally.refused,
      })
      for (const id of Object.values(sessions)) await system?.fetch(`/v1/sessions/${id}`, { method: "DELETE" })
      await system?.[Symbol.asyncDispose]()
      rmSync(outside, { recursive: true, force: true })
    }, 120_000)

    test("in a session: nothing of root's is read or touched by any verb", async () => {
      const session = sessions["oci"] ?? ""
      const before = await privately(session)
      expect(before).toContain(secret.text)
      await race(session, "/home/user/arena", "/root/kept")
      await racedAll(sessionVerbs(session, "/home/user/arena"))
      await endRaces(session)
      expect(await privately(session)).toBe(before)
    })

    test("in a session of the process driver: nothing outside of its folders is read or touched by any verb", async () => {
      const usual = system
      const before = outsideNow()
      await using other = await ApiSystem.start({ WARREN_DRIVER: "process" })
      let session = ""
      try {
        system = other
        session = String((await json("/v1/sessions", { name: "process" }))["id"])
        await race(session, "$HOME/arena", outside)
        await racedAll(sessionVerbs(session, "/home/user/arena"))
        await endRaces(session)
      } finally {
        // Its folders are not below the home of this test, which is removed with all that is in it.
        await other.fetch(`/v1/sessions/${session}`, { method: "DELETE" })
        system = usual
      }
      expect(outsideNow()).toEqual(before)
      expect(readFileSync(join(outside, "file"), "utf8")).toBe(hostSecret.text)
    })

    test("in a workspace: nothing outside of it is read or touched by any verb", async () => {
      const before = outsideNow()
      await race(sessions["oci"] ?? "", "/workspace/arena", outside)
      await racedAll(workspaceVerbs("raced"))
      await endRaces(sessions["oci"] ?? "")
      expect(outsideNow()).toEqual(before)
      expect(readFileSync(join(outside, "file"), "utf8")).toBe(hostSecret.text)
    })

    test("taken whole: snapshots and images of it have links as links, and nothing they lead to", async () => {
      const session = sessions["oci"] ?? ""
      const before = outsideNow()
      await race(session, "/home/user/second", outside)
      for (let n = 0; n < 3; n++) {
        const { id } = await json(`/v1/sessions/${session}/snapshots`, { name: `raced-${n}` })
        const { sessions: forks } = (await json(`/v1/sessions/${session}/fork`, {})) as { sessions: { id: string }[] }
        cases += 2
        expect(filesWith({ hostSecret }, join(system.home.driverRoot, "volume", String(id)))).toEqual([])
        for (const fork of forks) {
          expect(hostSecret.in(await run(fork.id, "cat /home/user/second/*/file"))).toBeUndefined()
          await system.fetch(`/v1/sessions/${fork.id}`, { method: "DELETE" })
        }
        await system.fetch(`/v1/snapshots/${String(id)}`, { method: "DELETE" })
      }
      expect(outsideNow()).toEqual(before)
    })

    test("git: addresses that would run something are none", async () => {
      const session = sessions["oci"] ?? ""
      const mark = `mark${secret.text.slice(-12)}`
      // The races are over; they would only make this slow.
      await endRaces(session)
      const wrong: unknown[] = []
      for (const address of hostileAddresses) {
        const repo = address.replaceAll("MARK", mark)
        const body = JSON.stringify({ spec: { adapter: "scripted" }, repo })
        const { status } = await system.fetch(`/v1/sessions/${session}/agent`, { method: "POST", body })
        gitCases++
        if (status !== 400) wrong.push([address, status])
      }
      expect(wrong).toEqual([])
      expect(existsSync(`/tmp/${mark}`)).toBe(false)
      expect(await run(session, `ls /tmp/${mark} 2>&1 || true`)).toContain("No such file")
    })

    test("git: what a repository wants to have run is not run outside; inside only what git itself has no word against", async () => {
      const session = sessions["oci"] ?? ""
      const mark = join(outside, "..", `git${secret.text.slice(-12)}`)
      await run(session, makingRepositories("/home/user/repos", mark))
      const before = outsideNow()
      // The one that lists files does what the other two do.
      const asked = tries > 100 ? ["git", "git/files", "git/diff"] : ["git", "git/diff"]
      const look = async (at: number): Promise<void> => {
        for (const path of asked) {
          const folder = `/home/user/repos/r${at}/repo`
          const query = new URLSearchParams({ folder, ...(path === "git" ? {} : { against: "head" }) }).toString()
          const answer = await system.fetch(`/v1/sessions/${session}/${path}?${query}`)
          gitCases++
          const text = await answer.text()
          // What git makes of it is git's; it is said, and it is no bug of ours.
          expect([at, path, answer.status === 500 ? text : ""]).toEqual([at, path, ""])
          expect(secret.in(text)).toBeUndefined()
        }
      }
      const every = [...Object.keys(hostileRepositories).keys()]
      for (let at = 0; at < every.length; at += atOnce) await Promise.all(every.slice(at, at + atOnce).map(look))
      expect(outsideNow()).toEqual(before)
      expect(readdirSync(tmpdir()).filter((name) => name.startsWith(`git${secret.text.slice(-12)}`))).toEqual([])
      const ran = (await run(session, `ls -d ${mark}-* 2>/dev/null || true`)).split("\n").filter(Boolean)
      const names = Object.keys(hostileRepositories)
      // In the sandbox a repository's own programs may run as its user, who could run them anyway; these are all.
      const wanted = new Set(["a filter", "a filter that goes on, as LFS has", "a folder of hooks", "hooks of its own"])
      expect(
        ran.map((path) => names[Number(path.split("-").at(-1))] ?? path).filter((name) => !wanted.has(name)),
      ).toEqual([])
    })
  },
)
