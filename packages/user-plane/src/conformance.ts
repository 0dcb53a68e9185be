import type { Answer, Asked, CallName, Context, Handlers, StreamName } from "@warren/protocol/contract.ts"
import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"
import { describe, expect, test } from "vitest"
import type { dataCalls } from "@warren/protocol/user-plane.ts"

type Calls = typeof dataCalls
type Told = { readonly ev?: string; readonly exitCode?: number | null; readonly [field: string]: unknown }

/** A user plane being asked as a caller does: defaults left out, one signal for everything. */
export class Asking {
  readonly #contract: Calls
  readonly #plane: () => Handlers<Calls>
  readonly signal: AbortSignal

  constructor(contract: Calls, plane: () => Handlers<Calls>, signal = new AbortController().signal) {
    this.#contract = contract
    this.#plane = plane
    this.signal = signal
  }

  async call<K extends CallName<Calls>>(name: K, input: Asked<Calls, K>): Promise<Answer<Calls, K>> {
    const handler = this.#plane()[name] as unknown as (input: unknown, context: Context) => Promise<Answer<Calls, K>>
    return handler(this.#contract[name].in.parse(input), this.#context)
  }

  async open<K extends StreamName<Calls>>(name: K, input: Asked<Calls, K>): Promise<Conversation<unknown, Told>> {
    const handler = this.#plane()[name] as unknown as (
      input: unknown,
      context: Context,
    ) => Promise<Conversation<unknown, Told>>
    return handler(this.#contract[name].in.parse(input), this.#context)
  }

  feed(
    name: "session.follow" | "session.feed" | "file.watch" | "process.subscribeStdout",
    input: object,
  ): AsyncIterable<{ item: Told }> {
    const handler = this.#plane()[name] as unknown as (
      input: unknown,
      context: Context,
    ) => AsyncIterable<{ item: Told }>
    return handler(this.#contract[name].in.parse(input), this.#context)
  }

  /** Runs a command to its end. */
  async run(session: string, cmd: string, more: object = {}): Promise<{ stdout: string; stderr: string } & Told> {
    await using talk = await this.open("process.exec", { session, cmd, ...more })
    return await readOut(talk)
  }

  async write(session: string, path: string, text: string): Promise<void> {
    await using talk = await this.open("file.write", { session, path })
    await talk.write(Buffer.from(text))
    talk.send({ op: "eof" })
    expect(await talk.next()).toEqual({ ev: "written", bytes: Buffer.byteLength(text) })
  }

  async read(session: string, path: string): Promise<string> {
    await using talk = await this.open("file.read", { session, path })
    return (await readOut(talk)).stdout
  }

  get #context(): Context {
    return { signal: this.signal, caller: { name: "tester" } }
  }
}

const stderrTag = 3

/** Everything a stream says, to its end. */
async function readOut(talk: Conversation<unknown, Told>): Promise<{ stdout: string; stderr: string } & Told> {
  const out: Buffer[] = []
  const err: Buffer[] = []
  let last: Told = {}
  for (;;) {
    const item = await talk.next()
    if (item === undefined)
      return { ...last, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() }
    if (item instanceof Chunk) (item.tag === stderrTag ? err : out).push(Buffer.from(item.bytes))
    else last = item
  }
}

/** What every user plane does, wherever it is. Sessions have no network: what they reach is another suite's matter. */
export function userPlaneConformance(name: string, ask: () => Asking): void {
  const create = (wishes: Asked<Calls, "session.create"> = {}) =>
    ask().call("session.create", { network: { mode: "none" }, ...wishes })

  describe(`${name}: sessions`, () => {
    test("are made, found by id, name and label, listed in pages, changed and deleted", async () => {
      const labels = { suite: name.replaceAll(" ", "-") }
      const made = []
      for (let i = 0; i < 3; i++) made.push(await create({ name: `page-${i}`, labels }))
      const label = `suite=${labels.suite}`
      const first = await ask().call("session.list", { label, limit: 2 })
      const second = await ask().call("session.list", { label, limit: 2, cursor: first.nextCursor })
      expect([...first.items, ...second.items].map((one) => one.name)).toEqual(["page-2", "page-1", "page-0"])
      expect(second.nextCursor).toBeUndefined()
      expect(await ask().call("session.get", { id: "page-1" })).toEqual(
        await ask().call("session.get", { id: made[1]?.id ?? "" }),
      )
      const changed = await ask().call("session.update", {
        id: "page-1",
        name: "other",
        labels: { x: "y" },
        ttlMs: 60_000,
      })
      expect(changed).toMatchObject({ name: "other", labels: { x: "y" }, ttlMs: 60_000 })
      expect((await ask().call("session.list", { label })).items).toHaveLength(2)
      for (const { id } of made) await ask().call("session.delete", { id })
      await expect(ask().call("session.get", { id: "other" })).rejects.toMatchObject({ code: "not_found" })
      await expect(ask().call("session.delete", { id: "other" })).rejects.toMatchObject({ code: "not_found" })
    })

    test("with a key are the same for everybody who asks at once", async () => {
      const asked = Array.from({ length: 5 }, () =>
        ask().call("session.getOrCreate", { key: `key-${name}`, network: { mode: "none" } }),
      )
      const answers = await Promise.all(asked)
      expect(new Set(answers.map(({ session }) => session.id)).size).toBe(1)
      expect(answers.filter(({ isNew }) => isNew)).toHaveLength(1)
      const [first] = answers
      await ask().call("session.delete", { id: first?.session.id ?? "" })
    })

    test("say why they cannot do something", async () => {
      const { id } = await create()
      await expect(ask().call("session.resume", { id })).rejects.toMatchObject({ code: "conflict" })
      await ask().call("session.stop", { id })
      await expect(ask().run(id, "true")).rejects.toMatchObject({
        code: "conflict",
        hint: expect.stringContaining("restore"),
      })
      await expect(ask().call("session.pause", { id })).rejects.toMatchObject({ code: "conflict" })
      expect(await ask().call("session.restore", { id })).toMatchObject({ state: "running" })
      await expect(create({ image: "there-is-no-such" })).rejects.toMatchObject({ code: "not_found" })
      await expect(create({ from: "snp_00000000000000000000" })).rejects.toMatchObject({ code: "not_found" })
      await ask().call("session.delete", { id })
    })

    test("tell whoever is in one that somebody else stops", async () => {
      const { id: session } = await create()
      await using writing = await ask().open("file.write", { session, path: "/tmp/half" })
      await writing.write(Buffer.from("half"))
      const changes = ask().feed("file.watch", { session, path: "/tmp" })[Symbol.asyncIterator]()
      const inside = Promise.allSettled([writing.next(), changes.next()])
      await ask().call("session.stop", { id: session, graceMs: 0 })
      const told = { status: "rejected", reason: { code: "conflict", message: expect.stringContaining("stopped") } }
      expect(await inside).toMatchObject([told, told])
      await ask().call("session.delete", { id: session })
    })

    test("pause: what runs stands still, and goes on when it is used", async () => {
      const { id } = await create()
      const { pid } = await ask().call("process.spawn", {
        session: id,
        cmd: "while :; do date +%s%N > /tmp/tick; sleep 0.01; done",
      })
      expect(await ask().call("session.pause", { id })).toMatchObject({ state: "paused" })
      expect(await ask().call("session.get", { id })).toMatchObject({ state: "paused" })
      expect(await ask().call("process.status", { session: id, pid })).toMatchObject({ isRunning: true })
      expect(await ask().call("session.get", { id })).toMatchObject({ state: "running" })
      await ask().call("session.delete", { id })
    })

    test("are told of as they change", async () => {
      const stop = new AbortController()
      const feed = ask().feed("session.follow", { after: 0 })[Symbol.asyncIterator]()
      const { id } = await create()
      await ask().call("session.hibernate", { id })
      await ask().call("session.delete", { id })
      const seen: string[] = []
      while (!seen.includes("deleted")) {
        const { value } = (await feed.next()) as { value: { item: Told & { session?: { state: string } } } }
        if (value.item["id"] === id)
          seen.push(String(value.item["event"]) === "deleted" ? "deleted" : (value.item.session?.state ?? ""))
      }
      expect(seen).toEqual(["running", "hibernating", "hibernated", "stopping", "deleted"])
      stop.abort()
      await feed.return?.()
    })

    test("show what is measured", async () => {
      const { id } = await create()
      expect(await ask().call("session.posture", { id })).toMatchObject({ noNewPrivileges: true, seccompMode: 2 })
      expect((await ask().call("session.stats", { id })).pids).toBeGreaterThan(0)
      await ask().call("session.delete", { id })
    })
  })

  describe(`${name}: snapshots`, () => {
    test("outlive their session and start others", async () => {
      const { id } = await create()
      await ask().write(id, "/home/user/note", "kept")
      const snapshot = await ask().call("snapshot.create", { session: id, name: "first" })
      expect((await ask().call("snapshot.list", { session: id })).items.map((one) => one.id)).toEqual([snapshot.id])
      await ask().call("session.delete", { id })
      const again = await create({ from: snapshot.id })
      expect(await ask().read(again.id, "/home/user/note")).toBe("kept")
      await ask().call("snapshot.delete", { id: snapshot.id })
      expect(await ask().read(again.id, "/home/user/note")).toBe("kept")
      await expect(ask().call("snapshot.delete", { id: snapshot.id })).rejects.toMatchObject({ code: "not_found" })
      await ask().call("session.delete", { id: again.id })
    })

    test("fork and roll back", async () => {
      const { id } = await create()
      await ask().write(id, "/home/user/note", "one")
      const snapshot = await ask().call("snapshot.create", { session: id })
      await ask().write(id, "/home/user/note", "two")
      const { sessions } = await ask().call("session.fork", { id, count: 2, name: "twin" })
      expect(sessions.map((one) => one.name).toSorted()).toEqual(["twin-1", "twin-2"])
      await ask().call("session.rollback", { id, snapshot: snapshot.id })
      expect(await ask().read(id, "/home/user/note")).toBe("one")
      for (const fork of sessions) {
        expect(await ask().read(fork.id, "/home/user/note")).toBe("two")
        await ask().call("session.delete", { id: fork.id })
      }
      expect((await ask().call("snapshot.list", { session: id })).items).toHaveLength(1)
      await ask().call("session.delete", { id })
    })
  })

  describe(`${name}: programs`, () => {
    test("have streams apart, an input, an environment, an exit code and a reason", async () => {
      const { id } = await create({ env: { ONE: "1" } })
      const result = await ask().run(id, "echo $ONE$TWO; echo err >&2; exit 7", { env: { TWO: "2" } })
      expect(result).toMatchObject({ ev: "exit", exitCode: 7, reason: "exit", stdout: "12\n", stderr: "err\n" })
      expect(await ask().run(id, "sleep 60", { timeoutMs: 50 })).toMatchObject({ reason: "timeout" })
      expect(await ask().run(id, "yes", { outputBytesMax: 10_000 })).toMatchObject({ reason: "limit", truncated: true })
      await using talk = await ask().open("process.exec", { session: id, argv: ["cat"], stdin: true })
      await talk.write(Buffer.from("in and out"))
      talk.send({ op: "eof" })
      expect(await readOut(talk)).toMatchObject({ stdout: "in and out", exitCode: 0 })
      await expect(ask().run(id, "true", { argv: ["true"] })).rejects.toMatchObject({ code: "invalid" })
      await ask().call("session.delete", { id })
    })

    test("end when nobody stays with them", async () => {
      const { id } = await create()
      {
        await using talk = await ask().open("process.exec", { session: id, cmd: "echo $$ > /tmp/pid; sleep 1000" })
        expect(await talk.next()).toMatchObject({ ev: "started" })
        await ask().run(id, "until [ -s /tmp/pid ]; do :; done")
      }
      await expect(
        ask().run(id, "while kill -0 $(cat /tmp/pid) 2>&-; do :; done; echo gone", { timeoutMs: 20_000 }),
      ).resolves.toMatchObject({
        stdout: "gone\n",
      })
      await ask().call("session.delete", { id })
    })

    test("go on by themselves when detached, and are read later", async () => {
      const { id: session } = await create()
      const { pid } = await ask().call("process.spawnRpc", {
        session,
        cmd: 'while read line; do echo "<$line>"; done; echo end',
      })
      await ask().call("process.writeStdin", { session, pid, text: "a\nb\n" })
      const read = async (after: number): Promise<{ text: string; next: number }> =>
        ask().call("process.readStdout", { session, pid, after, waitMs: 2_000, limit: 4 })
      const first = await read(0)
      expect(first).toMatchObject({ text: "<a>\n", next: 4 })
      await ask().call("process.writeStdin", { session, pid, text: "", isLast: true })
      const lines: Told[] = []
      for await (const { item } of ask().feed("process.subscribeStdout", { session, pid })) lines.push(item)
      expect(lines.map((item) => item["line"])).toEqual(["<a>", "<b>", "end", undefined])
      expect(await ask().call("process.status", { session, pid })).toMatchObject({
        isRunning: false,
        ended: { exitCode: 0 },
      })
      expect(await ask().call("process.kill", { session, pid })).toEqual({ wasRunning: false })
      await ask().call("session.delete", { id: session })
    })

    test("in a shell leave their mark on the next", async () => {
      const { id: session } = await create()
      const { shell } = await ask().call("shell.open", { session })
      const run = async (cmd: string): Promise<Told & { stdout: string }> => {
        await using talk = await ask().open("shell.run", { session, shell, cmd })
        return await readOut(talk)
      }
      await run("cd /tmp; export X=kept; f() { echo called; }")
      expect(await run("pwd; echo $X; f")).toMatchObject({
        ev: "done",
        exitCode: 0,
        stdout: "/tmp\nkept\ncalled\n",
        cwd: "/tmp",
      })
      expect((await ask().call("shell.list", { session })).shells.map((one) => one.shell)).toEqual([shell])
      await ask().call("shell.close", { session, shell })
      await expect(run("true")).rejects.toMatchObject({ code: "not_found" })
      await ask().call("session.delete", { id: session })
    })

    test("that listen are reached by connecting inside", async () => {
      const { id: session } = await create()
      const server = `python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 8123)); s.listen(); print("up", flush=True)
c, _ = s.accept(); c.sendall(b"<" + c.recv(100) + b">")'`
      const { pid } = await ask().call("process.spawn", { session, cmd: server })
      await ask().call("process.readStdout", { session, pid, waitMs: 20_000, limit: 3 })
      await using talk = await ask().open("port.connect", { session, port: 8123 })
      expect(await talk.next()).toEqual({ ev: "connected" })
      await talk.write(Buffer.from("hello"))
      expect((await readOut(talk)).stdout).toBe("<hello>")
      await expect(ask().open("port.connect", { session, port: 8124 })).rejects.toMatchObject({ code: "unavailable" })
      await ask().call("session.delete", { id: session })
    })
  })

  describe(`${name}: files`, () => {
    test("of a session are written, read in parts, listed, moved and removed", async () => {
      const { id: session } = await create()
      await ask().write(session, "/tmp/a/b/file", "0123456789")
      await using part = await ask().open("file.read", { session, path: "/tmp/a/b/file", offset: 3, limit: 4 })
      expect((await readOut(part)).stdout).toBe("3456")
      const { entries } = await ask().call("file.list", { session, path: "/tmp/a", depth: 2 })
      expect(entries.map((entry) => entry.path)).toEqual(["/tmp/a/b", "/tmp/a/b/file"])
      await ask().call("file.move", { session, path: "/tmp/a/b/file", to: "/tmp/a/c" })
      expect(await ask().call("file.stat", { session, path: "/tmp/a/c" })).toMatchObject({
        type: "file",
        size: 10,
        path: "/tmp/a/c",
      })
      await ask().call("file.mkdir", { session, path: "/tmp/a/d" })
      await ask().call("file.remove", { session, path: "/tmp/a", recursive: true })
      await expect(ask().read(session, "/tmp/a/c")).rejects.toMatchObject({ code: "not_found" })
      await ask().call("session.delete", { id: session })
    })

    test("of a workspace are the same inside and outside, and outlive sessions", async () => {
      const workspace = `ws-${name.replaceAll(" ", "-")}`
      const { id } = await create({ workspace })
      await ask().run(id, "echo inside > /workspace/from-inside")
      {
        await using talk = await ask().open("workspace.write", { name: workspace, path: "from-outside" })
        await talk.write(Buffer.from("outside"))
        talk.send({ op: "eof" })
        expect(await talk.next()).toMatchObject({ ev: "written", entry: { sizeBytes: 7 } })
      }
      expect(await ask().run(id, "cat /workspace/from-outside; echo more >> /workspace/from-outside")).toMatchObject({
        stdout: "outside",
        exitCode: 0,
      })
      await expect(ask().call("workspace.delete", { name: workspace })).rejects.toMatchObject({ code: "conflict" })
      await ask().call("session.delete", { id })
      await using talk = await ask().open("workspace.read", { name: workspace, path: "from-inside" })
      expect((await readOut(talk)).stdout).toBe("inside\n")
      expect(await ask().call("workspace.delete", { name: workspace })).toEqual({ isDeleted: true })
    })
  })

  describe(`${name}: the rest`, () => {
    test("secrets go in, come out in programs that asked for them, and nowhere else", async () => {
      await ask().call("secrets.set", { name: "TOKEN", value: "hunter2" })
      expect(JSON.stringify(await ask().call("secrets.list", {}))).not.toContain("hunter2")
      const [without, withIt] = [await create(), await create({ secrets: ["TOKEN"] })]
      expect((await ask().run(without.id, "echo $TOKEN")).stdout).toBe("\n")
      expect((await ask().run(withIt.id, "echo $TOKEN")).stdout).toBe("hunter2\n")
      expect(JSON.stringify(withIt)).not.toContain("hunter2")
      await ask().call("secrets.delete", { name: "TOKEN" })
      for (const { id } of [without, withIt]) await ask().call("session.delete", { id })
    })

    test("memories and the user's own database", async () => {
      const { id } = await ask().call("memory.add", { text: "the badger digs at night" })
      const { items } = await ask().call("memory.search", { query: "badger" })
      expect(items.map((one) => one.memory.id)).toEqual([id])
      await ask().call("memory.delete", { id })
      await ask().call("db.execute", { sql: "CREATE TABLE IF NOT EXISTS t (x)" })
      await ask().call("db.execute", { sql: "INSERT INTO t VALUES (?)", parameters: [5] })
      expect(await ask().call("db.query", { sql: "SELECT max(x) AS x FROM t" })).toMatchObject({ rows: [[5]] })
      await expect(ask().call("db.query", { sql: "DELETE FROM t" })).rejects.toMatchObject({ code: expect.any(String) })
    })

    test("images: the machine itself is there, others are not found", async () => {
      expect((await ask().call("image.list", {})).items.map((image) => image.id)).toContain("host")
      await expect(ask().call("image.inspect", { name: "nothing" })).rejects.toMatchObject({ code: "not_found" })
    })
  })
}
