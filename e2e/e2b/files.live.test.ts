import { gzipSync } from "node:zlib"
import { createHash, randomBytes } from "node:crypto"
import { eventually } from "@warren/base/testing/eventually.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { E2bSystem, sdks } from "./system.ts"

const system = await E2bSystem.start()
afterAll(() => system[Symbol.asyncDispose]())
const { options } = system

describe.each(sdks)("files by $version", ({ sdk }) => {
  let sandbox: InstanceType<typeof sdk.Sandbox>
  beforeAll(async () => {
    sandbox = await sdk.Sandbox.create("base", { ...options, timeoutMs: 600_000 })
  })
  afterAll(() => sandbox.kill())

  test("are written and read: text, bytes, blobs, streams, nothing", async () => {
    const { files } = sandbox
    expect(await files.write("a/b/text.txt", "Grüße\n")).toMatchObject({
      path: "/home/user/a/b/text.txt",
      name: "text.txt",
      type: "file",
    })
    expect(await files.read("a/b/text.txt")).toBe("Grüße\n")
    const bytes = randomBytes(300_000)
    await files.write("/tmp/bytes", new Uint8Array(bytes).buffer)
    expect(Buffer.from(await files.read("/tmp/bytes", { format: "bytes" })).equals(bytes)).toBe(true)
    await files.write("blob", new Blob(["from a blob"]))
    expect(await (await files.read("blob", { format: "blob" })).text()).toBe("from a blob")
    await files.write("stream", new Blob(["from a stream"]).stream())
    let text = ""
    for await (const piece of await files.read("stream", { format: "stream" })) text += Buffer.from(piece).toString()
    expect(text).toBe("from a stream")
    await files.write("empty", "")
    expect(await files.read("empty")).toBe("")
    expect((await files.read("empty", { format: "bytes" })).length).toBe(0)
    await files.write("a/b/text.txt", "shorter")
    expect(await files.read("~/a/b/text.txt")).toBe("shorter")
    expect((await sandbox.commands.run("stat -c '%U %a' a/b/text.txt a/b")).stdout).toBe("user 644\nuser 755\n")
  })

  test("many in one request", async () => {
    const written = await sandbox.files.write([
      { path: "many/one", data: "1" },
      { path: '/tmp/two "quoted"', data: "2" },
      { path: "many/umläut €", data: "3" },
    ])
    expect(written.map(({ path }) => path)).toEqual([
      "/home/user/many/one",
      '/tmp/two "quoted"',
      "/home/user/many/umläut €",
    ])
    expect(await sandbox.files.read("many/umläut €")).toBe("3")
    expect(await sandbox.files.write([])).toEqual([])
  })

  test("large ones, packed and not", async () => {
    const bytes = randomBytes(8 * 1024 * 1024)
    const digest = createHash("sha256").update(bytes).digest("hex")
    const blob = new Blob([bytes])
    await sandbox.files.write("large", blob)
    expect((await sandbox.commands.run("sha256sum < large")).stdout.slice(0, 64)).toBe(digest)
    await sandbox.files.write("packed", blob, { gzip: true, useOctetStream: true } as never)
    expect((await sandbox.commands.run("sha256sum < packed")).stdout.slice(0, 64)).toBe(digest)
    const back = await sandbox.files.read("packed", { format: "bytes", gzip: true } as never)
    expect(
      createHash("sha256")
        .update(back as unknown as Uint8Array)
        .digest("hex"),
    ).toBe(digest)
  })

  test("with what is noted about them", async () => {
    const write = (data: string, more: object = {}): Promise<unknown> => sandbox.files.write("noted", data, more)
    expect(await write("x", { metadata: { author: "alice", "Run-Id": "7" } })).toMatchObject({
      metadata: { author: "alice", "run-id": "7" },
    })
    expect((await sandbox.files.getInfo("noted")).metadata).toEqual({ author: "alice", "run-id": "7" })
    const listed = (await sandbox.files.list("/home/user")).find(({ name }) => name === "noted")
    expect(listed?.metadata).toEqual({ author: "alice", "run-id": "7" })
    await write("y", { metadata: { other: "z" } })
    expect((await sandbox.files.getInfo("noted")).metadata).toEqual({ other: "z" })
    await write("z")
    expect((await sandbox.files.getInfo("noted")).metadata).toBeUndefined()
  })

  test("what is not there, and what is no file", async () => {
    const { files } = sandbox
    await expect(files.read("absent")).rejects.toThrow(sdk.NotFoundError)
    await expect(files.read("absent")).rejects.toThrow("path 'absent' does not exist")
    await expect(files.read("/tmp")).rejects.toThrow(sdk.InvalidArgumentError)
    await expect(files.list("absent")).rejects.toThrow(sdk.NotFoundError)
    await expect(files.getInfo("absent")).rejects.toThrow(sdk.NotFoundError)
    await expect(files.rename("absent", "other")).rejects.toThrow(sdk.NotFoundError)
    expect(await files.exists("absent")).toBe(false)
    await files.write("there", "x")
    expect(await files.exists("there")).toBe(true)
    await expect(files.list("there")).rejects.toThrow(sdk.InvalidArgumentError)
    await expect(files.write("there", "x", { user: "no-such-user" })).rejects.toThrow(sdk.AuthenticationError)
    await expect(files.write("there/below", "x")).rejects.toThrow()
  })

  test("of others are touched as theirs would", async () => {
    await sandbox.files.write("/etc/of-root.conf", "mine", { user: "root" })
    expect(await sandbox.files.read("/etc/of-root.conf")).toBe("mine")
    expect((await sandbox.files.getInfo("/etc/of-root.conf")).owner).toBe("root")
    await sandbox.files.write("/opt/app/main.txt", "placed")
    expect((await sandbox.commands.run("cat /opt/app/main.txt; stat -c %U /opt/app/main.txt")).stdout).toBe(
      "placeduser\n",
    )
    await sandbox.commands.run("sudo sh -c 'echo secret > /root/only; chmod 600 /root/only'")
    expect(await sandbox.files.read("/root/only", { user: "root" })).toBe("secret\n")
  })

  test("in folders: made, listed by depth, moved, removed", async () => {
    const { files } = sandbox
    expect(await files.makeDir("tree/b/c")).toBe(true)
    expect(await files.makeDir("tree/b/c")).toBe(false)
    await files.write("tree/a.txt", "aaa")
    await files.write("tree/b/inner", "i")
    const names = (entries: { path: string }[]): string[] =>
      entries.map(({ path }) => path.replace("/home/user/tree/", ""))
    expect(names(await files.list("tree"))).toEqual(["a.txt", "b"])
    expect(names(await files.list("tree", { depth: 2 }))).toEqual(["a.txt", "b", "b/c", "b/inner"])
    await expect(files.list("tree", { depth: 0 })).rejects.toThrow(sdk.InvalidArgumentError)
    const [file, folder] = await files.list("/home/user/tree")
    expect(file).toMatchObject({
      name: "a.txt",
      type: "file",
      size: 3,
      mode: 0o644,
      permissions: "-rw-r--r--",
      owner: "user",
      group: "user",
    })
    expect(folder).toMatchObject({ name: "b", type: "dir", permissions: "drwxr-xr-x" })
    expect(Math.abs((file?.modifiedTime?.getTime() ?? 0) - Date.now())).toBeLessThan(60_000)
    await sandbox.commands.run("ln -s a.txt tree/link; ln -s nowhere tree/dangling")
    const link = await files.getInfo("tree/link")
    expect(link).toMatchObject({ name: "link", type: "file", symlinkTarget: "/home/user/tree/a.txt", size: 3 })
    expect(await files.rename("tree/a.txt", "moved/deep/a2.txt")).toMatchObject({
      path: "/home/user/moved/deep/a2.txt",
      name: "a2.txt",
    })
    expect(await files.exists("tree/a.txt")).toBe(false)
    expect(await files.read("moved/deep/a2.txt")).toBe("aaa")
    await files.remove("tree")
    expect(await files.exists("tree")).toBe(false)
    await files.remove("tree")
    expect(await files.makeDir("/tmp")).toBe(false)
  })

  test("are watched", async () => {
    await sandbox.files.makeDir("watched/sub")
    const seen: { name: string; type: string }[] = []
    const handle = await sandbox.files.watchDir("watched", (event) => void seen.push(event), { recursive: true })
    const saw = (name: string, type: string): Promise<void> =>
      eventually(() => seen.some((event) => event.name === name && event.type === type))
    await sandbox.files.write("watched/new", "1")
    await saw("new", "create")
    await saw("new", "write")
    await sandbox.files.write("watched/sub/deep", "2")
    await saw("sub/deep", "create")
    await sandbox.commands.run("chmod 600 watched/new; mv watched/new watched/renamed; rm watched/sub/deep")
    await saw("new", "chmod")
    await saw("new", "rename")
    await saw("renamed", "create")
    await saw("sub/deep", "remove")
    await sandbox.commands.run("mkdir -p watched/later/below; sleep 0.1; touch watched/later/below/file")
    await saw("later/below/file", "create")
    await handle.stop()
    await expect(sandbox.files.watchDir("absent", () => undefined)).rejects.toThrow(sdk.NotFoundError)
    await expect(sandbox.files.watchDir("watched/renamed", () => undefined)).rejects.toThrow(sdk.InvalidArgumentError)
    let only = 0
    const flat = await sandbox.files.watchDir("watched", () => void only++)
    await sandbox.commands.run("touch watched/sub/unseen watched/seen")
    await eventually(() => only > 0)
    await flat.stop()
  })

  test("by addresses that are signed", async () => {
    await sandbox.files.write("shared.txt", "for everybody")
    const url = await sandbox.downloadUrl("shared.txt")
    expect(await (await fetch(url)).text()).toBe("for everybody")
    const timed = await sandbox.downloadUrl("shared.txt", { useSignatureExpiration: 60 })
    expect((await fetch(timed)).status).toBe(200)
    const over = await sandbox.downloadUrl("shared.txt", { useSignatureExpiration: -10 })
    const refused = await fetch(over)
    expect(refused.status).toBe(401)
    expect(await refused.json()).toEqual({ code: 401, message: "signature is already expired" })
    const upload = await sandbox.uploadUrl("uploaded.txt")
    const form = new FormData()
    form.append("file", new Blob(["sent"]), "ignored.txt")
    expect((await fetch(upload, { method: "POST", body: form })).status).toBe(200)
    expect(await sandbox.files.read("uploaded.txt")).toBe("sent")
    const forged = new URL(url)
    forged.searchParams.set("path", "uploaded.txt")
    expect((await fetch(forged)).status).toBeGreaterThanOrEqual(400)
    const crossed = new URL(upload)
    expect((await fetch(crossed)).status).toBeGreaterThanOrEqual(400)
    const part = await fetch(url, { headers: { range: "bytes=4-7" } })
    expect([part.status, await part.text(), part.headers.get("content-range")]).toEqual([206, "ever", "bytes 4-7/13"])
  })

  test("that are sent in a broken way are refused, and nothing breaks", async () => {
    const send = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>): Promise<Response> =>
      fetch(`${options.sandboxUrl}/files?path=broken`, { method: "POST", body, headers: { ...to, ...headers } })
    const token = (sandbox as unknown as { envdAccessToken: string }).envdAccessToken
    const to = { "e2b-sandbox-id": sandbox.sandboxId, "e2b-sandbox-port": "49983", "x-access-token": token }
    expect(
      (await send("not gzip", { "content-type": "application/octet-stream", "content-encoding": "gzip" })).status,
    ).toBe(400)
    expect((await send("x", { "content-type": "multipart/form-data" })).status).toBe(400)
    expect((await send("--b\r\nno end", { "content-type": "multipart/form-data; boundary=b" })).status).toBe(400)
    expect((await send("x", { "content-type": "application/octet-stream", "content-encoding": "br" })).status).toBe(400)
    const packed = await send(new Uint8Array(gzipSync("whole")), {
      "content-type": "application/octet-stream",
      "content-encoding": "gzip",
    })
    expect(packed.status).toBe(200)
    expect(await sandbox.files.read("broken")).toBe("whole")
  })
})
