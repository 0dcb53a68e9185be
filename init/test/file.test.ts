import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises"
import { createServer, type Server } from "node:net"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { gid, Init, isRoot, type Json, type Result, uid, type Wire } from "./client.ts"

let init: Init
let dir = ""
let count = 0
beforeAll(async () => void (init = await Init.start()))
afterAll(() => init[Symbol.asyncDispose]())
beforeEach(async () => {
  dir = `${init.workspace}/t${(count += 1)}`
  expect((await init.call({ op: "file.mkdir", path: dir })).last).toEqual({ ev: "ok" })
})

async function write(path: string, data: Buffer | string, more: Json = {}): Promise<Result> {
  using wire = init.open({ op: "file.write", path, ...more })
  const bytes = Buffer.from(data)
  for (let at = 0; at < bytes.length; at += 200_000) wire.bytes(bytes.subarray(at, at + 200_000))
  return await wire.send({ op: "eof" }).all()
}

describe("files", () => {
  it.runIf(isRoot)("say why folders above them cannot be made", async () => {
    expect((await write("/etc/not/allowed", "x", { parents: true })).last).toMatchObject({
      ev: "fault",
      code: "forbidden",
    })
    await write(`${dir}/plain`, "x")
    expect((await write(`${dir}/plain/below/f`, "x", { parents: true })).last).toMatchObject({ ev: "fault" })
  })

  it("have marks that are set as a whole, and shown to who asks", async () => {
    const path = `${dir}/marked`
    await write(path, "x")
    const mark = async (values: Json, more: Json = {}): Promise<Json> =>
      (await init.call({ op: "file.mark", path, prefix: "user.test.", values, ...more })).last
    const seen = async (prefix?: string): Promise<unknown> => {
      const [answer] = (await init.call({ op: "file.stat", path, ...(prefix ? { marks: prefix } : {}) })).events
      return (answer?.["entry"] as Json | undefined)?.["marks"]
    }
    expect(await mark({ author: "alice", "with-dash": "two words" })).toEqual({ ev: "ok" })
    expect(await seen("user.test.")).toEqual({ author: "alice", "with-dash": "two words" })
    expect(await seen("user.other.")).toBeUndefined()
    expect(await seen()).toBeUndefined()
    const listed = await init.call({ op: "file.list", path: dir, marks: "user.test." })
    expect(listed.events[0]).toMatchObject({ entries: [{ name: "marked", marks: { author: "alice" } }] })
    expect(await mark({ last: "" })).toEqual({ ev: "ok" })
    expect(await seen("user.test.")).toEqual({ last: "" })
    expect(await mark({})).toEqual({ ev: "ok" })
    expect(await seen("user.test.")).toBeUndefined()
    for (const wrong of [
      { prefix: "security." },
      { prefix: "" },
      { values: [] },
      { values: { a: 1 } },
      { values: { ["n".repeat(300)]: "v" } },
    ])
      expect(await mark({}, wrong)).toMatchObject({ ev: "fault", code: "invalid" })
    expect(await mark({}, { path: `${dir}/absent` })).toMatchObject({ ev: "fault", code: "not_found" })
  })

  it("are written and read back, byte for byte", async () => {
    const data = Buffer.alloc(1_234_567, Buffer.from([0, 1, 255, 10, 123]))
    expect((await write(`${dir}/f`, data)).events).toEqual([{ ev: "ready" }, { ev: "ok", bytes: data.length }])
    const back = await init.call({ op: "file.read", path: `${dir}/f` })
    expect(back.events[0]).toMatchObject({
      ev: "ok",
      entry: { name: "f", type: "file", size: data.length, uid, gid, mode: 0o644 },
    })
    expect(back.bytes(4).equals(data)).toBe(true)
    expect(back.last).toEqual({ ev: "end", bytes: data.length })
    const part = await init.call({ op: "file.read", path: `${dir}/f`, offset: 3, limit: 4 })
    expect(part.bytes()).toEqual(data.subarray(3, 7))
    expect((await init.call({ op: "file.read", path: `${dir}/f`, offset: 9_999_999 })).last).toEqual({
      ev: "end",
      bytes: 0,
    })
  })

  it("may be empty, appended to, and keep or change their mode", async () => {
    await write(`${dir}/f`, "")
    expect((await stat(`${dir}/f`)).size).toBe(0)
    await write(`${dir}/f`, "a", { mode: 0o751 })
    await write(`${dir}/f`, "b", { append: true })
    expect(await readFile(`${dir}/f`, "utf8")).toBe("ab")
    await write(`${dir}/f`, "c")
    expect((await stat(`${dir}/f`)).mode & 0o7777).toBe(0o751)
    expect(await readFile(`${dir}/f`, "utf8")).toBe("c")
    await write(`${dir}/g`, "x", { atomic: false, mode: 0o600 })
    expect((await stat(`${dir}/g`)).mode & 0o7777).toBe(0o600)
  })

  it("are written through symlinks, into new parents", async () => {
    await write(`${dir}/a/b/c/f`, "x", { parents: true })
    await init.sh(`cd ${dir} && ln -s a/b/c/f link && ln -s new dangling`)
    await write(`${dir}/link`, "y")
    await write(`${dir}/dangling`, "z")
    expect(await readFile(`${dir}/a/b/c/f`, "utf8")).toBe("y")
    expect(await readFile(`${dir}/new`, "utf8")).toBe("z")
    expect((await write(`${dir}/no/f`, "x")).last).toMatchObject({ ev: "fault", code: "not_found" })
  })

  it("leave nothing behind when the host goes away or writes too much", async () => {
    await write(`${dir}/f`, "old")
    const wire = init.open({ op: "file.write", path: `${dir}/f` }).bytes("half")
    await wire.event()
    expect((await readdir(dir)).length).toBe(2)
    wire.socket.destroy()
    await init.settle(
      () => readdir(dir),
      (names) => names.length === 1,
    )
    expect(await readFile(`${dir}/f`, "utf8")).toBe("old")
    expect((await write(`${dir}/f`, "12345", { bytesMax: 5 })).last).toEqual({ ev: "ok", bytes: 5 })
    expect((await write(`${dir}/f`, "123456", { bytesMax: 5 })).last).toMatchObject({ ev: "fault", code: "limit" })
    using bad = init.open({ op: "file.write", path: `${dir}/f` }).bytes("x", 2)
    expect((await bad.all()).last).toMatchObject({ ev: "fault", code: "invalid" })
    expect(await readdir(dir)).toEqual(["f"])
    expect(await readFile(`${dir}/f`, "utf8")).toBe("12345")
  })

  it("leave nothing behind when init stops in the middle", async () => {
    await using other = await Init.start()
    using wire = other.open({ op: "file.write", path: `${dir}/f` }).bytes("half")
    await wire.event()
    await other.call({ op: "stop", graceMs: 5000 })
    expect(await wire.next()).toBeUndefined()
    expect(await readdir(dir)).toEqual([])
  })

  it("that are not files are refused, never waited for", async () => {
    await init.sh(`mkfifo ${dir}/p`)
    for (const path of [`${dir}/p`, dir, "/dev/null", "/dev/zero"]) {
      expect((await init.call({ op: "file.read", path })).last).toMatchObject({ ev: "fault", code: "invalid" })
      expect((await write(path, "x")).last).toMatchObject({ ev: "fault", code: "invalid" })
    }
    expect((await write(`${dir}/p`, "x", { atomic: false })).last).toMatchObject({ ev: "fault", code: "invalid" })
  })

  it("have paths that are checked", async () => {
    const name = "n".repeat(255)
    for (const path of ["relative", "", "/a\0b", `/${"x".repeat(4095)}`, 7, null])
      expect((await init.call({ op: "file.stat", path })).last).toMatchObject({ ev: "fault", code: "invalid" })
    expect((await init.call({ op: "file.stat", path: `/${"x/".repeat(2046)}ab` })).last).toMatchObject({
      code: "not_found",
    })
    expect((await write(`${dir}/${name}`, "x")).last).toMatchObject({ ev: "ok" })
    expect((await write(`${dir}/${name}n`, "x")).last).toMatchObject({ ev: "fault", code: "invalid" })
  })

  it("are described", async () => {
    await write(`${dir}/f`, "12345", { mode: 0o4711 })
    await init.sh(`cd ${dir} && ln -s f link && ln -s gone dangling && mkfifo p`)
    const entry = async (name: string, follow?: boolean): Promise<Json> =>
      (await init.call({ op: "file.stat", path: `${dir}/${name}`, follow })).last["entry"] as Json
    expect(await entry("f")).toMatchObject({ name: "f", type: "file", size: 5, mode: 0o4711, uid, gid })
    expect(await entry("link")).toMatchObject({ type: "file", size: 5 })
    expect(await entry("link", false)).toMatchObject({ name: "link", type: "symlink", target: "f" })
    expect(await entry("p")).toMatchObject({ type: "fifo" })
    expect((await init.call({ op: "file.stat", path: `${dir}/dangling` })).last).toMatchObject({ code: "not_found" })
    expect((await init.call({ op: "file.stat", path: "/dev/null" })).last["entry"]).toMatchObject({ type: "char" })
    expect((await init.call({ op: "file.stat", path: "/" })).last["entry"]).toMatchObject({ name: "/", type: "dir" })
  })

  it("are listed to a depth, with strange names", async () => {
    await init.sh(
      `cd ${dir} && mkdir -p a/b/c && touch a/f a/b/g a/b/c/h && ln -s / a/root && touch "$(printf 'b\\377d')"`,
    )
    const names = async (more: Json): Promise<string[]> => {
      const { events } = await init.call({ op: "file.list", path: dir, ...more })
      return events
        .flatMap((event) =>
          ((event["entries"] as Json[] | undefined) ?? []).map((one) => String(one["name"] ?? one["nameBase64"])),
        )
        .sort()
    }
    expect(await names({})).toEqual(["Yv9k", "a"])
    expect(await names({ depth: 2 })).toEqual(["Yv9k", "a", "a/b", "a/f", "a/root"])
    expect(await names({ depth: 100 })).toEqual(["Yv9k", "a", "a/b", "a/b/c", "a/b/c/h", "a/b/g", "a/f", "a/root"])
    expect((await init.call({ op: "file.list", path: dir, depth: 100, limit: 8 })).last).toEqual({
      ev: "end",
      count: 8,
      truncated: false,
    })
    expect((await init.call({ op: "file.list", path: dir, depth: 100, limit: 7 })).last).toEqual({
      ev: "end",
      count: 7,
      truncated: true,
    })
    expect((await init.call({ op: "file.list", path: `${dir}/a/f` })).last).toMatchObject({
      ev: "fault",
      code: "invalid",
    })
  })

  it("are listed by the thousand", async () => {
    await init.sh(`cd ${dir} && seq 3000 | xargs touch`)
    const { events, last } = await init.call({ op: "file.list", path: dir })
    expect(last).toEqual({ ev: "end", count: 3000, truncated: false })
    expect(events.length).toBeGreaterThan(2)
  })

  it("are made, moved and removed", async () => {
    const op = async (request: Json): Promise<unknown> => {
      const { last } = await init.call(request)
      return last["code"] ?? last["ev"]
    }
    expect(await op({ op: "file.mkdir", path: `${dir}/d`, mode: 0o2775 })).toBe("ok")
    expect((await stat(`${dir}/d`)).mode & 0o7777).toBe(0o2775)
    expect(await op({ op: "file.mkdir", path: `${dir}/d` })).toBe("conflict")
    expect(await op({ op: "file.mkdir", path: `${dir}/d`, parents: true })).toBe("ok")
    expect(await op({ op: "file.mkdir", path: `${dir}/x/y/z` })).toBe("not_found")
    expect(await op({ op: "file.mkdir", path: `${dir}/x/y/z`, parents: true })).toBe("ok")
    await write(`${dir}/f`, "f")
    await write(`${dir}/g`, "g")
    expect(await op({ op: "file.mkdir", path: `${dir}/f`, parents: true })).toBe("conflict")
    expect(await op({ op: "file.move", from: `${dir}/f`, to: `${dir}/g`, overwrite: false })).toBe("conflict")
    expect(await op({ op: "file.move", from: `${dir}/f`, to: `${dir}/g` })).toBe("ok")
    expect(await readFile(`${dir}/g`, "utf8")).toBe("f")
    expect(await op({ op: "file.move", from: `${dir}/f`, to: `${dir}/g` })).toBe("not_found")
    expect(await op({ op: "file.remove", path: `${dir}/x` })).toBe("conflict")
    await init.sh(`ln -s / ${dir}/x/root`)
    expect(await op({ op: "file.remove", path: `${dir}/x`, recursive: true })).toBe("ok")
    expect(await op({ op: "file.remove", path: `${dir}/g` })).toBe("ok")
    expect(await op({ op: "file.remove", path: `${dir}/d` })).toBe("ok")
    expect(await op({ op: "file.remove", path: `${dir}/g` })).toBe("not_found")
    expect(await readdir(dir)).toEqual([])
  })

  it.skipIf(!isRoot)("need the user's own rights (needs root)", async () => {
    const secret = `${init.folder}/secret`
    await mkdir(secret, { mode: 0o700 })
    await writeFile(`${secret}/f`, "s", { mode: 0o600 })
    await writeFile(`${init.folder}/ro`, "s", { mode: 0o644 })
    await symlink(`${secret}/f`, `${dir}/link`)
    await chmod(init.folder, 0o755)
    for (const path of [`${secret}/f`, `${dir}/link`])
      expect((await init.call({ op: "file.read", path })).last).toMatchObject({ ev: "fault", code: "forbidden" })
    expect((await write(`${secret}/g`, "x")).last).toMatchObject({ code: "forbidden" })
    expect((await write(`${init.folder}/ro`, "x")).last).toMatchObject({ code: "forbidden" })
    expect((await init.call({ op: "file.remove", path: `${init.folder}/ro` })).last).toMatchObject({
      code: "forbidden",
    })
    expect((await init.call({ op: "file.read", path: `${secret}/f`, user: "root" })).out).toBe("s")
    await write(`${dir}/owned`, "x", { user: "root", owner: "1234:5678" })
    expect(await stat(`${dir}/owned`)).toMatchObject({ uid: 1234, gid: 5678 })
    expect((await write(`${dir}/mine`, "x", { owner: "1234:5678" })).last).toMatchObject({ code: "forbidden" })
    expect(await readdir(dir)).not.toContain("mine")
  })
})

describe("watch", () => {
  const changes = async (wire: Wire, until: (change: Json) => boolean): Promise<string[]> => {
    const seen: string[] = []
    for (;;) {
      const change = await wire.event()
      seen.push([change["kind"], change["path"], change["to"]].filter((part) => part !== undefined).join(" "))
      if (until(change)) return [...new Set(seen)]
    }
  }
  const file =
    (name: string) =>
    (change: Json): boolean =>
      change["path"] === name

  it("sees files come, change and go", async () => {
    using wire = init.open({ op: "file.watch", path: dir })
    expect(await wire.event()).toEqual({ ev: "ok" })
    await init.sh(`cd ${dir} && echo x >f && chmod 600 f && mv f g && rm g && touch end`)
    expect(await changes(wire, file("end"))).toEqual([
      "create f",
      "write f",
      "chmod f",
      "rename f g",
      "remove g",
      "create end",
    ])
  })

  it("sees moves in and out as create and remove", async () => {
    using wire = init.open({ op: "file.watch", path: dir })
    await wire.event()
    await init.sh(`cd ${dir} && touch ../in-${count} && mv ../in-${count} in && mv in ../out-${count} && touch end`)
    expect(await changes(wire, file("end"))).toEqual(["create in", "remove in", "create end"])
  })

  it("follows new directories, and tells what was already in them", async () => {
    using wire = init.open({ op: "file.watch", path: dir, recursive: true })
    await wire.event()
    await init.sh(`cd ${dir} && mkdir -p a/b/c && touch a/b/c/f`)
    const first = await changes(wire, file("a/b/c/f"))
    for (const name of ["a", "a/b", "a/b/c", "a/b/c/f"]) expect(first).toContain(`create ${name}`)
    await init.sh(`cd ${dir} && mv a z && echo x >z/b/c/g`)
    expect(await changes(wire, file("z/b/c/g"))).toContain("rename a z")
    await init.sh(`cd ${dir} && rm -r z && touch end`)
    expect(await changes(wire, file("end"))).toContain("remove z")
  })

  it("does not look below without being asked", async () => {
    await init.sh(`mkdir ${dir}/sub`)
    using wire = init.open({ op: "file.watch", path: dir })
    await wire.event()
    await init.sh(`touch ${dir}/sub/f ${dir}/end`)
    expect(await changes(wire, file("end"))).not.toContain("create sub/f")
  })

  it("refuses what is not there, and more than 8192 directories", async () => {
    expect((await init.call({ op: "file.watch", path: `${dir}/no` })).last).toMatchObject({ code: "not_found" })
    await init.sh(`cd ${dir} && seq 8191 | xargs mkdir`)
    using wire = init.open({ op: "file.watch", path: dir, recursive: true })
    expect(await wire.event()).toEqual({ ev: "ok" })
    wire.socket.destroy()
    await init.sh(`mkdir ${dir}/one-more`)
    expect((await init.call({ op: "file.watch", path: dir, recursive: true })).last).toMatchObject({
      ev: "fault",
      code: "limit",
    })
  })
})

describe("connect", () => {
  async function echo(where: { path?: string; host?: string }): Promise<Server> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", () => {})
      socket.on("data", (chunk) => socket.write(chunk))
      socket.on("end", () => socket.end("bye"))
    })
    await new Promise<void>((resolve) =>
      server.listen(where.path ? { path: where.path } : { host: where.host, port: 0 }, resolve),
    )
    return server
  }

  it.each(["127.0.0.1", "::1", "path"])("relays raw bytes and half-close: %s", async (where) => {
    const path = where === "path" ? `${init.workspace}/echo.sock` : undefined
    const server = await echo(path ? { path } : { host: where }).catch(() => undefined)
    if (!server) return // no IPv6 here
    if (path) await chmod(path, 0o777)
    const address = server.address()
    const port = address && typeof address === "object" ? address.port : undefined
    try {
      const wire = init.open(path ? { op: "connect", path } : { op: "connect", port })
      expect(await wire.event()).toEqual({ ev: "ok" })
      let back = Buffer.alloc(0)
      wire.socket.removeAllListeners("data").on("data", (chunk: Buffer) => (back = Buffer.concat([back, chunk])))
      const data = Buffer.alloc(2_000_000, "raw bytes, no frames ")
      wire.socket.end(data)
      await new Promise((resolve) => wire.socket.once("end", resolve))
      expect(back.equals(Buffer.concat([data, Buffer.from("bye")]))).toBe(true)
      wire.socket.destroy()
    } finally {
      await new Promise((resolve) => server.close(resolve))
    }
  })

  it("says when nobody listens", async () => {
    const server = await echo({ host: "127.0.0.1" })
    const address = server.address()
    await new Promise((resolve) => server.close(resolve))
    const port = address && typeof address === "object" ? address.port : 1
    expect((await init.call({ op: "connect", port })).last).toMatchObject({ ev: "fault", code: "unavailable" })
    expect((await init.call({ op: "connect", path: `${dir}/no.sock` })).last).toMatchObject({ code: "unavailable" })
    for (const request of [
      {},
      { port: 0 },
      { port: 65536 },
      { port: 1, path: "/x" },
      { path: "x" },
      { path: `/${"x".repeat(108)}` },
    ])
      expect((await init.call({ op: "connect", ...request })).last).toMatchObject({ ev: "fault", code: "invalid" })
  })
})
