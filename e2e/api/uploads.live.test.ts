import { execFileSync } from "node:child_process"
import { mkdir, writeFile } from "node:fs/promises"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, expect, test } from "vitest"
import { ApiSystem } from "./system.ts"

const system = await ApiSystem.start()
afterAll(() => system[Symbol.asyncDispose]())

/** A tar archive of these files. */
async function archiveOf(files: Readonly<Record<string, string>>): Promise<Uint8Array<ArrayBuffer>> {
  await using folder = await TempFolder.make()
  for (const [name, content] of Object.entries(files)) {
    await mkdir(folder.at(name, ".."), { recursive: true })
    await writeFile(folder.at(name), content)
  }
  return new Uint8Array(execFileSync("tar", ["-C", folder.path, "-cf", "-", "."]))
}

test("an image is brought as the body of a request", async () => {
  const tree = await archiveOf({ "etc/motd": "hello" })
  const [id] = await system.warren.images.import(tree, { name: "tiny:1", format: "rootfs" })
  expect(await system.warren.images.list()).toContainEqual(expect.objectContaining({ id }))
  const refused = await system.fetch("/v1/images/import?name=tiny:2", { method: "POST", body: "no archive" })
  expect(refused.status).toBe(400)
})

test("an image is made from a recipe that is sent with its files, saying how far it is", async () => {
  const recipe = "FROM tiny:1\nARG WHAT\nLABEL what=$WHAT\nCOPY file.txt /file.txt\n"
  const archive = await archiveOf({ Recipe: recipe, "file.txt": "content" })
  const said: string[] = []
  let ids: readonly string[] = []
  for await (const step of system.warren.images.build("made:1", archive, { network: "none", args: { WHAT: "it" } })) {
    if (step.text !== undefined) said.push(step.text)
    if (step.ids) ({ ids } = step)
  }
  expect(said.join("\n")).toContain("COPY")
  expect(await system.warren.images.inspect("made:1")).toMatchObject({ id: ids[0] })
  const build = (query: string, body: Uint8Array<ArrayBuffer>) =>
    system.fetch(`/v1/images/build?${query}`, { method: "POST", body }).then(async (answer) => ({
      status: answer.status,
      said: (await answer.json()) as { ids?: string[]; error?: { hint: string; message: string } },
    }))
  const named = await build(`name=made:2&recipe=${encodeURIComponent("FROM tiny:1\n")}`, archive)
  expect([named.status, named.said.ids]).toEqual([200, [expect.any(String)]])
  const without = await build("name=made:3", await archiveOf({ "file.txt": "content" }))
  expect([without.status, without.said.error?.hint]).toEqual([400, expect.stringContaining("Recipe")])
  expect((await build("name=made:3&args=nonsense", archive)).status).toBe(400)
})

test("what listens inside is reached over a WebSocket, both ways until both have said everything", async () => {
  await using session = await system.warren.sessions.create({ network: { mode: "none" } })
  const server = `import socket
s = socket.create_server(("127.0.0.1", 7000)); print("ready", flush=True)
while True:
    c, _ = s.accept(); told = b""
    while piece := c.recv(65536): told += piece
    c.sendall(told[::-1]); c.close()`
  const process = await session.spawn(["python3", "-c", server])
  for await (const piece of process.output()) if ("text" in piece && piece.text.includes("ready")) break
  const said = new Uint8Array(300_000).map((_, index) => index % 251)
  await using port = session.connect(7000)
  await port.write(said)
  await port.end()
  const heard: Uint8Array[] = []
  for await (const bytes of port) heard.push(bytes)
  expect(Buffer.concat(heard).equals(Buffer.from(said.toReversed()))).toBe(true)
  await using nobody = session.connect(7001)
  await expect(nobody[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "unavailable" })
  const plain = await system.fetch(`/v1/sessions/${session.id}/ports/7000/connect`)
  expect(plain.status).toBe(400)
})
