import { once } from "node:events"
import { readdirSync, readFileSync, readlinkSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { text as readAll } from "node:stream/consumers"
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest"
import { ApiSystem } from "../api/system.ts"
import { Canary, filesWith, memoryWith } from "./canary.ts"
import { record } from "./results.ts"

const planted = {
  secret: new Canary(),
  env: new Canary(),
  file: new Canary(),
  input: new Canary(),
  prompt: new Canary(),
}
/** Sent where it is none of anybody's business: in addresses, headers and bodies of requests that are refused. */
const stray = new Canary()
const all = { ...planted, stray }

/** What leaves the daemons of Warren by other ways than an answer: telemetry, memory, what a crash leaves, what is said of a mistake. */
describe.skipIf(process.getuid?.() !== 0)("what the daemons hold", { timeout: 120_000 }, () => {
  let system: ApiSystem
  let session = ""
  let looked = 0
  let failed = 0
  const exported: string[] = []
  const collector: Server = createServer((request, response) => {
    void readAll(request).then((body) => {
      exported.push(`${request.url}\n${JSON.stringify(request.headers)}\n${body}`)
      response.end("{}")
    })
  })

  const ask = async (path: string, body: object, method = "POST"): Promise<Record<string, unknown>> => {
    const answer = await system.fetch(path, { method, body: JSON.stringify(body) })
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as Record<string, unknown>
  }
  const none = (where: string, bytes: string): void => {
    looked += Object.keys(all).length
    const found = Object.entries(all).filter(([, canary]) => canary.in(bytes) !== undefined)
    expect([where, found.map(([name]) => name)]).toEqual([where, []])
  }

  beforeAll(async () => {
    await once(collector.listen(0, "127.0.0.1"), "listening")
    const { port } = collector.address() as AddressInfo
    system = await ApiSystem.start({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` })
    await ask("/v1/secrets/GIVEN", { value: planted.secret.text }, "PUT")
    const wishes = { name: "planted", env: { PLANTED: planted.env.text }, secrets: ["GIVEN"] }
    session = String((await ask("/v1/sessions", wishes))["id"])
    const at = `/v1/sessions/${session}`
    await ask(`${at}/exec`, { cmd: "cat > kept", stdin: planted.file.text })
    await ask(`${at}/exec`, { cmd: "cat > /dev/null", stdin: planted.input.text })
    await ask(`${at}/agent`, { spec: { adapter: "scripted" } })
    const script = JSON.stringify({ steps: [{ text: planted.prompt.text }] })
    await ask(`${at}/agent/prompts`, { text: `[[script:${script}]]` })
  }, 120_000)
  afterEach(({ task }) => void (failed += task.result?.state === "fail" ? 1 : 0))
  afterAll(async () => {
    record("canaries-daemons", { cases: looked, bad: failed, planted: Object.keys(all).length })
    await system?.fetch(`/v1/sessions/${session}`, { method: "DELETE" })
    await system?.[Symbol.asyncDispose]()
    collector.close()
    collector.closeAllConnections()
  }, 120_000)

  test("a mistake is answered with neither the inside of Warren nor what was sent, and no log has it", async () => {
    const word = stray.text
    const at = `/v1/sessions/${session}`
    const mistakes: readonly (readonly [path: string, init: RequestInit])[] = [
      ["/v1/secrets/KEPT", { method: "PUT", body: `{"value":"${word}` }],
      ["/v1/secrets/KEPT", { method: "PUT", body: JSON.stringify({ value: [word] }) }],
      ["/v1/secrets/KEPT", { method: "PUT", body: JSON.stringify({ value: `${word}${"x".repeat(5_000_000)}` }) }],
      [`${at}/exec`, { method: "POST", body: JSON.stringify({ cmd: { word } }) }],
      [`${at}/exec`, { method: "POST", body: JSON.stringify({ cmd: "true", env: { "a=b": word } }) }],
      [`${at}/exec`, { method: "POST", body: JSON.stringify({ cmd: "true", user: 7, stdin: word }) }],
      ["/v1/login", { method: "POST", body: JSON.stringify({ name: "root", password: word }) }],
      ["/v1/invites/redeem", { method: "POST", body: JSON.stringify({ code: word }) }],
      ["/v1/sessions", { headers: { authorization: `Bearer ${word}` } }],
      ["/v1/sessions", { headers: { authorization: `Basic ${word}` } }],
      ["/v1/sessions", { headers: { authorization: "", cookie: `warren-sign-in=${word}` } }],
      [`/v1/nowhere?token=${word}`, {}],
      [`${at}/agent/prompts`, { method: "POST", body: JSON.stringify({ text: [word] }) }],
      [
        "/v1/db/execute",
        { method: "POST", body: JSON.stringify({ sql: "SELECT nothing FROM ?", parameters: [word] }) },
      ],
      [`${at}/files/content?path=relative`, { method: "PUT", body: word }],
    ]
    for (const [path, init] of mistakes) {
      const traced = { traceparent: `00-${word}`, tracestate: `warren=${word}`, baggage: `user=${word}` }
      const headers = { ...traced, "user-agent": word, ...(init.headers as Record<string, string>) }
      const answer = await system.fetch(path, { ...init, headers })
      const text = await answer.text()
      expect([path, answer.status < 500 && answer.status >= 400]).toEqual([path, true])
      none(path, `${text}${JSON.stringify([...answer.headers])}`)
      expect([
        path,
        /\bat .*\.[cm]?[jt]s:\d|node:internal|node_modules/.test(text),
        text.includes(system.home.path),
      ]).toEqual([path, false, false])
    }
    none("what both said", system.said)
    // What sandboxes stand on is gigabytes, and none of it was sent there.
    const folders = [system.home.path, join(system.home.path, "runner")].flatMap((folder) =>
      readdirSync(folder).map((name) => join(folder, name)),
    )
    const searched = folders.filter((path) => !system.home.driverRoot.startsWith(path))
    expect(searched.flatMap((path) => filesWith({ stray }, path))).toEqual([])
  })

  test("telemetry has names of calls and numbers, and nothing that anybody sent", async () => {
    await expect.poll(() => exported.join("").includes('"process.exec"'), { timeout: 30_000 }).toBe(true)
    const text = exported.join("\n")
    none("what a collector is sent", text)
    const names = [...text.matchAll(/"name":"([^"]*)"/g)].map(([, name = ""]) => name)
    expect(names.filter((name) => !/^[a-zA-Z][\w. -]{0,40}$/.test(name))).toEqual([])
    expect([text.includes(session), text.includes(system.token)]).toEqual([false, false])
  })

  test("no daemon has any of it on its command line or in its environment, nor is told to write reports of its memory", () => {
    for (const [name, pid] of Object.entries(system.pids)) {
      const said = ["cmdline", "environ"].map((one) => readFileSync(`/proc/${pid}/${one}`, "utf8")).join("\0")
      none(`${name}, as root sees it`, said)
      expect([name, /--(?:report|heapsnapshot|heap-prof|inspect|diagnostic)/.exec(said)?.[0]]).toEqual([
        name,
        undefined,
      ])
      expect([name, Number(readFileSync(`/proc/${pid}/coredump_filter`, "utf8"))]).toEqual([name, 0])
    }
  })

  test("a control plane that nobody told has none of it in memory, whatever is done with it", async () => {
    // What is sent in passes through it, and stays in its memory until something else is written over it.
    const passed = memoryWith(all, system.pids.control)
    await system.replaceControl()
    const at = `/v1/sessions/${session}`
    const cmd = 'test -n "$GIVEN" && test -n "$PLANTED" && test -s kept && sha256sum kept > /dev/null'
    for (let n = 0; n < 20; n++) expect((await ask(`${at}/exec`, { cmd }))["exitCode"]).toBe(0)
    await (await system.fetch("/v1/secrets")).text()
    await (await system.fetch(at)).text()
    const { secret, file, input } = planted
    looked += 4
    expect(memoryWith({ secret, file, input, stray }, system.pids.control)).toEqual([])
    console.log(`canaries: in the memory of the control plane that was told: ${passed.join(", ") || "none"}`)
  })

  test.each(["SIGUSR2", "SIGABRT"] as const)("%s makes neither a report nor a snapshot nor a core", async (name) => {
    const pid = system.pids.control
    const folders = [readlinkSync(`/proc/${pid}/cwd`), system.home.path, `${system.home.path}/control`]
    const before = folders.map((folder) => leftIn(folder))
    process.kill(pid, name)
    await expect.poll(() => system.isRunning, { timeout: 30_000 }).toBe(false)
    await system.startControl()
    looked += folders.length
    expect(folders.map((folder) => leftIn(folder))).toEqual(before)
  })
})

function leftIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => /^core|^report\.|heapsnapshot|^Heap\.|\.cpuprofile$/.test(name))
}
