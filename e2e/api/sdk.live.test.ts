import type { Piece } from "@warren/sdk/output.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { ApiSystem } from "./system.ts"

const system = await ApiSystem.start()
afterAll(() => system[Symbol.asyncDispose]())
const { warren } = system

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

const plain = { network: { mode: "none" } } as const

describe("sessions", () => {
  test("are gone at the end of their block, unless kept", async () => {
    const ids: string[] = []
    {
      await using gone = await warren.sessions.create(plain)
      await using kept = await warren.sessions.create({ ...plain, name: "kept", keep: true })
      ids.push(gone.id, kept.id)
      expect(gone.state).toBe("running")
    }
    await expect(warren.sessions.get(ids[0] ?? "")).rejects.toMatchObject({ code: "not_found" })
    await using found = await warren.sessions.get("kept")
    expect(found.id).toBe(ids[1])
    await found.delete()
    await found.delete()
  })

  test("asked for twice by one key are one", async () => {
    const [a, b] = await Promise.all([
      warren.sessions.getOrCreate("job 7/x", plain),
      warren.sessions.getOrCreate("job 7/x", plain),
    ])
    expect(a.id).toBe(b.id)
    expect(a.isNew).toBe(!b.isNew)
    await a.delete()
  })

  test("fork, freeze, go back and sleep", async () => {
    await using session = await warren.sessions.create(plain)
    await session.files.write("/home/user/note", "before")
    const snapshot = await session.snapshot()
    await session.files.write("/home/user/note", "after")
    const forks = await session.fork(2)
    for (const fork of forks) {
      await using _ = fork
      expect(await fork.files.readText("/home/user/note")).toBe("after")
    }
    expect((await session.pause()).state).toBe("paused")
    expect((await session.resume()).state).toBe("running")
    await session.rollback(snapshot)
    expect(await session.files.readText("/home/user/note")).toBe("before")
    expect((await session.hibernate()).state).toBe("hibernated")
    expect((await session.restore()).state).toBe("running")
    expect((await session.update({ labels: { stage: "test" } })).info.labels).toEqual({ stage: "test" })
    const listed = await all(session.snapshots())
    expect(listed.map(({ id }) => id)).toContain(snapshot.id)
    expect((await session.stats()).pids).toBeGreaterThan(0)
    expect((await session.posture()).measuredAt).not.toBe("")
    expect(await session.denials()).toEqual([])
  })
})

describe("programs", () => {
  let session: Awaited<ReturnType<typeof warren.sessions.create>>
  beforeAll(async () => {
    session = await warren.sessions.create({ ...plain, env: { GREETING: "hello" } })
  })
  afterAll(() => session.delete())

  test("end with everything they said, exactly", async () => {
    const pieces: Piece[] = []
    const result = await session.exec("printf 'a\\377b'; echo oops >&2; echo $GREETING $WHO; exit 3", {
      env: { WHO: "you" },
      cwd: "/tmp",
      onStdout: (piece) => pieces.push(piece),
    })
    expect(result).toMatchObject({ exitCode: 3, signal: null, reason: "exit", stderr: "oops\n", truncated: false })
    expect(Buffer.from(result.stdoutBytes).toString("latin1")).toBe("a\xffbhello you\n")
    expect(Buffer.concat(pieces.map(({ bytes }) => bytes))).toEqual(Buffer.from(result.stdoutBytes))
  })

  test("read text, bytes and streams", async () => {
    expect((await session.exec(["cat"], { stdin: "text" })).stdout).toBe("text")
    const bytes = new Uint8Array(2_000_000).map((_, index) => index % 251)
    const back = await session.exec(["cat"], { stdin: bytes })
    expect(Buffer.from(back.stdoutBytes).equals(Buffer.from(bytes))).toBe(true)
    const stream = new Blob(["from a ", "stream"]).stream()
    expect((await session.exec(["cat"], { stdin: stream })).stdout).toBe("from a stream")
    // It ends without having read what it was given.
    expect((await session.exec(["true"], { stdin: bytes })).exitCode).toBe(0)
  })

  test("are ended by a signal of ours, or by their time", async () => {
    const stop = new AbortController()
    const reason = new Error("enough")
    const running = session.exec("echo started; exec sleep 1000", {
      signal: stop.signal,
      onStdout: () => stop.abort(reason),
    })
    await expect(running).rejects.toBe(reason)
    await expect.poll(async () => (await session.exec("pgrep -c sleep; true")).stdout).toBe("0\n")
    expect(await session.exec("sleep 1000", { timeoutMs: 50 })).toMatchObject({ reason: "timeout" })
  })

  test("that are spawned go on, can be written to, killed and found again", async () => {
    const process = await session.spawn(["cat"], { stdin: true })
    await process.write("one\n")
    const output = process.output()
    expect((await output.next()).value).toMatchObject({ from: "stdout", text: "one\n" })
    await output.return(undefined as never)
    const again = session.process(process.pid)
    await again.write("two\n", { isLast: true })
    const told: string[] = []
    for await (const piece of again) told.push("text" in piece ? piece.text : "")
    expect(told.join("")).toBe("one\ntwo\n")
    expect(await again.wait()).toMatchObject({ exitCode: 0 })
    const sleeper = await session.spawn("exec sleep 1000")
    expect(await sleeper.kill("SIGKILL")).toBe(true)
    expect(await sleeper.wait()).toMatchObject({ signal: "SIGKILL" })
    expect((await session.processes()).map(({ pid }) => pid)).toContain(process.pid)
  })

  test("in a shell find what was there before", async () => {
    await using shell = await session.shell()
    expect(await shell.run("cd /tmp; export WHO=me; exit_later() { return 4; }")).toMatchObject({ cwd: "/tmp" })
    expect(await shell.run("echo $WHO; exit_later")).toMatchObject({ stdout: "me\n", exitCode: 4 })
    expect(await shell.run("sleep 1000", { timeoutMs: 50 })).toMatchObject({ reason: "timeout" })
    expect((await shell.run("pwd")).stdout).toBe("/tmp\n")
  })

  test("on a terminal have one", async () => {
    await using terminal = session.terminal({
      command: "stty size; read line; stty size; echo got $line; exit 2",
      cols: 100,
      rows: 30,
    })
    let shown = ""
    let isAsked = false
    for await (const { text } of terminal) {
      shown += text
      if (isAsked || !shown.includes("30 100")) continue
      isAsked = true
      await terminal.resize(120, 40)
      await terminal.write("hi\r")
    }
    expect(shown).toContain("40 120")
    expect(await terminal.wait()).toMatchObject({ exitCode: 2 })
  })

  test("that nobody could start are a fault", async () => {
    await expect(session.exec(["/no/such/program"])).rejects.toMatchObject({ code: "not_found" })
    await expect(session.exec("")).rejects.toMatchObject({ code: "invalid" })
    await expect(session.exec(["cat"], { stdin: new Uint8Array(8), cwd: "/no/such/folder" })).rejects.toMatchObject({
      code: "not_found",
    })
  })
})

describe("files", () => {
  let session: Awaited<ReturnType<typeof warren.sessions.create>>
  beforeAll(async () => {
    session = await warren.sessions.create(plain)
  })
  afterAll(() => session.delete())

  test("are written whole, read, listed, moved and removed", async () => {
    const { files } = session
    expect(await files.write("deep/a.txt", "hello")).toEqual({ bytes: 5 })
    expect(await files.readText("deep/a.txt")).toBe("hello")
    expect(await files.readText("deep/a.txt", { offset: 1, limit: 3 })).toBe("ell")
    await files.mkdir("deep/folder")
    expect((await files.list("deep")).map(({ name, type }) => `${name} ${type}`).toSorted()).toEqual([
      "a.txt file",
      "folder dir",
    ])
    await files.move("deep/a.txt", "/workspace/b.txt")
    expect(await files.exists("deep/a.txt")).toBe(false)
    expect((await files.stat("b.txt")).size).toBe(5)
    await files.remove("deep", { recursive: true })
    await expect(files.read("deep/a.txt")).rejects.toMatchObject({ code: "not_found" })
  })

  test("pass through as streams, however big", async () => {
    const { files } = session
    const size = 20 * 1024 * 1024
    let left = size
    const source = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (left === 0) return controller.close()
        left -= 64 * 1024
        controller.enqueue(new Uint8Array(64 * 1024).fill(left % 256))
      },
    })
    expect(await files.write("big", source)).toEqual({ bytes: size })
    let read = 0
    for await (const piece of await files.download("big")) read += piece.length
    expect(read).toBe(size)
  })

  test("are watched", async () => {
    const stop = new AbortController()
    const changes = session.files.watch("/workspace", { signal: stop.signal })
    // Whether the watch stands is not told: what is written again and again is seen by one that does.
    let isSeen = false
    const seeing = (async () => {
      for await (const { path, to = path } of changes) {
        isSeen ||= to.endsWith("seen")
        if (isSeen) stop.abort(new Error("enough"))
      }
    })()
    const ended = seeing.catch((thrown: unknown) => thrown)
    await expect.poll(() => session.files.write("seen", "x").then(() => isSeen)).toBe(true)
    expect(await ended).toMatchObject({ message: "enough" })
  })
})

describe("the rest", () => {
  test("images, workspaces, secrets and memories", async () => {
    expect((await warren.images.list()).flatMap(({ names }) => names)).toContain("host")
    const { name } = await warren.workspaces.create({ name: "notes" })
    await warren.workspaces.write(name, "a.txt", "in a workspace")
    expect(Buffer.from(await warren.workspaces.read(name, "a.txt")).toString()).toBe("in a workspace")
    expect((await all(warren.workspaces.files(name))).map((entry) => entry.path)).toEqual(["a.txt"])
    await warren.workspaces.delete(name)
    await warren.secrets.set("MY_TOKEN", "hidden")
    expect((await all(warren.secrets.list())).map((secret) => secret.name)).toEqual(["MY_TOKEN"])
    await warren.secrets.delete("MY_TOKEN")
    const memory = await warren.memories.add("the door is blue", { tags: ["house"] })
    expect((await warren.memories.search("blue")).items.map((hit) => hit.memory.id)).toEqual([memory.id])
    await warren.memories.delete(memory.id)
  })
})
