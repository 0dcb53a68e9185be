import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import type { Talk } from "../runner/talk.ts"
import { listed, noSession, session } from "./facts.ts"
import type { Chapter, Fact, Step } from "./story.ts"

/** What a user has besides sessions: a workspace, an image, a secret, a tunnel. Names begin with `p`. */
export function goodsChapter(p: string): Chapter {
  const [s, w, image, secret, tunnel] = [
    `${p}s`,
    `${p}w`,
    `docker.io/library/${p}:1`,
    `${p}_SECRET`.toUpperCase(),
    `${p}t`,
  ]
  const i = `${p}i`
  const tar = archive(p)
  const steps: Step[] = [
    {
      name: "workspace",
      act: (talk) => talk.call("workspace.create", { name: w }),
      after: { [`workspace:${w}`]: listed("workspace", w, true) },
    },
    {
      name: "a file in it",
      act: (talk) => writeTo(talk, w, "first"),
      after: { file: holds(w, "first") },
    },
    {
      name: "another in its place",
      act: (talk) => writeTo(talk, w, "second"),
      after: { file: holds(w, "second") },
    },
    {
      name: "a session with it",
      act: (talk) => talk.call("session.create", { name: s, workspace: w, network: { mode: "none" } }),
      after: { [`session:${s}`]: session(s, ["running"], { files: { "/workspace/file": "second" } }) },
    },
    {
      name: "import",
      act: (talk) => bring(talk, image, tar),
      after: { [`image:${image}`]: listed("image", image, true) },
    },
    {
      name: "the same again",
      act: (talk) => bring(talk, image, tar),
      after: { [`image:${image}`]: listed("image", image, true) },
    },
    {
      name: "a session of it",
      act: (talk) => talk.call("session.create", { name: i, image, network: { mode: "none" } }),
      after: { [`session:${i}`]: session(i, ["running"], { files: { "/etc/name": p } }) },
    },
    {
      name: "delete the session of it",
      act: (talk) => talk.call("session.delete", { id: i }),
      after: { [`session:${i}`]: noSession(i) },
    },
    {
      name: "secret",
      act: (talk) => talk.call("secrets.set", { name: secret, value: "hidden" }),
      after: { [`secret:${secret}`]: listed("secret", secret, true) },
    },
    {
      name: "tunnel",
      act: (talk) => talk.call("tunnel.create", { session: s, name: tunnel, port: 8000 }),
      after: { [`tunnel:${tunnel}`]: listed("tunnel", tunnel, true) },
    },
    {
      name: "delete the session",
      act: (talk) => talk.call("session.delete", { id: s }),
      after: { [`session:${s}`]: noSession(s), [`tunnel:${tunnel}`]: listed("tunnel", tunnel, false) },
    },
    {
      name: "delete the image",
      act: (talk) => talk.call("image.delete", { name: image }),
      after: { [`image:${image}`]: listed("image", image, false), "image:without a name": async () => undefined },
    },
    {
      name: "collect",
      act: (talk) => talk.call("image.gc", {}),
      after: { "image:without a name": listed("image", "without a name", false) },
      between: { "image:without a name": async () => undefined },
    },
    {
      name: "delete the secret",
      act: (talk) => talk.call("secrets.delete", { name: secret }),
      after: { [`secret:${secret}`]: listed("secret", secret, false) },
    },
    {
      name: "delete the workspace",
      act: (talk) => talk.call("workspace.delete", { name: w }),
      after: { [`workspace:${w}`]: listed("workspace", w, false), file: async () => undefined },
    },
  ]
  const first = {
    [`workspace:${w}`]: listed("workspace", w, false),
    file: async () => undefined,
    [`session:${s}`]: noSession(s),
    [`session:${i}`]: noSession(i),
    [`image:${image}`]: listed("image", image, false),
    [`secret:${secret}`]: listed("secret", secret, false),
    [`tunnel:${tunnel}`]: listed("tunnel", tunnel, false),
  }
  return { name: "goods", first, steps }
}

function holds(name: string, text: string): Fact {
  return async (talk) => {
    const held = await readFrom(talk, name).catch((failure: unknown) => Fault.from(failure).message)
    return held === text ? undefined : `it holds ${JSON.stringify(held)}`
  }
}

async function writeTo(talk: Talk, name: string, text: string): Promise<void> {
  await using writing = await talk.open("workspace.write", { name, path: "file" })
  await writing.write(Buffer.from(text))
  writing.send({ op: "eof" })
  if ((await writing.next()) === undefined) throw new Error("nobody said that it was written")
}

async function readFrom(talk: Talk, name: string): Promise<string> {
  await using reading = await talk.open("workspace.read", { name, path: "file" })
  const pieces: Buffer[] = []
  for (let item = await reading.next(); item !== undefined; item = await reading.next())
    if (item instanceof Chunk) pieces.push(Buffer.from(item.bytes))
  return Buffer.concat(pieces).toString()
}

async function bring(talk: Talk, name: string, tar: Buffer): Promise<void> {
  await using sending = await talk.open("image.import", { name, format: "rootfs" })
  await sending.write(tar)
  sending.send({ op: "eof" })
  for (;;) {
    const item = await sending.next()
    if (item === undefined) throw new Error("nobody said that it was brought")
    if (!(item instanceof Chunk) && item.ids) return
  }
}

/** A small tree, which nobody has brought before. */
function archive(name: string): Buffer {
  const folder = mkdtempSync(join(tmpdir(), "wt-"))
  try {
    mkdirSync(join(folder, "tree/etc"), { recursive: true })
    writeFileSync(join(folder, "tree/etc/name"), name)
    execFileSync("tar", ["-cf", join(folder, "tar"), "-C", join(folder, "tree"), "."])
    return readFileSync(join(folder, "tar"))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
