import { execFileSync } from "node:child_process"
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { Fault } from "@warren/base/fault.ts"
import { record } from "@warren/base/testing/results.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { digestBytes } from "../digest.ts"
import { archiveLimits } from "../limits.ts"
import { checksum } from "../tar/header.ts"
import { writeTar } from "../tar/writer.ts"
import { file, folder, hardlink, joined, raw, symlink, type Content } from "../testing/archives.ts"
import { hostileArchives } from "../testing/hostile.ts"
import { portrait } from "../testing/portrait.ts"
import { unpack } from "./packed.ts"
import { readXattrs } from "./xattrs.ts"

const isRoot = process.getuid?.() === 0
/** WARREN_DAMAGES=10000 for the long form. */
const damages = Number(process.env["WARREN_DAMAGES"] ?? 400)
/** Small enough for a test to reach. */
const limits = { ...archiveLimits, entriesMax: 1000, ratioFromBytes: 2_000_000, unpackedBytesMax: 100_000_000 }
let temp: TempFolder
let made = 0
beforeAll(async () => void (temp = await TempFolder.make()))
afterAll(() => temp[Symbol.asyncDispose]())

async function* pieces(bytes: Buffer, size = 1000): AsyncGenerator<Buffer, void, void> {
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size))
}

async function layerOf(archive: Buffer, size?: number) {
  const scratch = temp.at(`draft-${made++}`)
  const root = join(scratch, "root")
  mkdirSync(root, { recursive: true })
  return { root, ...(await unpack(pieces(archive, size), { root, scratch, limits })) }
}

describe.skipIf(!isRoot)("a hostile archive", () => {
  const canary = "/tmp/warren-canary"
  const corpus = Object.entries(hostileArchives(`${canary}-${process.pid}`))
  const place = `${canary}-${process.pid}`
  beforeAll(() => {
    mkdirSync(join(place, "dir"), { recursive: true })
    for (const name of ["secret", "dir/inner"]) {
      writeFileSync(join(place, name), "canary")
      utimesSync(join(place, name), 1, 2)
    }
    for (const name of ["dir", ""]) utimesSync(join(place, name), 1, 2)
  })
  let refused = 0
  afterAll(() => {
    record("hostile-archives", { cases: corpus.length, bad: corpus.length - refused })
    execFileSync("rm", ["-rf", place])
  })

  test("there are enough of them", () => expect(corpus.length).toBeGreaterThanOrEqual(50))

  test.each(corpus)("%s: is refused by name, and touches nothing outside its layer", async (_, { archive, says }) => {
    portrait(place)
    const before = portrait(place)
    const others = readdirSync(temp.path).length
    const failure: unknown = await layerOf(archive).catch((thrown: unknown) => thrown)
    expect(failure).toBeInstanceOf(Fault)
    expect((failure as Fault).message).toContain(says)
    expect(["invalid", "limit"]).toContain((failure as Fault).code)
    expect(portrait(place)).toEqual(before)
    expect(readdirSync(temp.path).length).toBe(others + 1)
    refused++
  })

  test("the canary tells: reading it is seen", () => {
    portrait(place)
    const before = portrait(place)
    readFileSync(join(place, "secret"))
    expect(portrait(place)).not.toEqual(before)
    utimesSync(join(place, "secret"), 1, 2)
  })
})

describe("an archive that is only looked into", () => {
  test("is ours, can be read by us, and keeps what may be executed", async () => {
    const scratch = temp.at(`draft-${made++}`)
    const root = join(scratch, "root")
    mkdirSync(root, { recursive: true })
    const theirs = { uid: 33, gid: 12 }
    const archive = writeTar([
      folder("d/", { ...theirs, mode: 0 }),
      file("d/run", "x", { ...theirs, mode: 0o6755 }),
      file("d/hidden", "x", { ...theirs, mode: 0 }),
      file("d/fixed", "x", { ...theirs, mode: 0o444 }),
      { ...symlink("d/link", "run"), ...theirs },
    ])
    await unpack(pieces(archive), { root, scratch, limits, isOurs: true })
    const seen = ["d", "d/run", "d/hidden", "d/fixed"].map((name) => lstatSync(join(root, name)))
    expect(seen.map(({ mode }) => mode & 0o7777)).toEqual([0o700, 0o755, 0o400, 0o444])
    expect([...seen, lstatSync(join(root, "d/link"))].every(({ uid }) => uid === process.getuid?.())).toBe(true)
  })
})

describe.skipIf(!isRoot)("an archive", () => {
  test("devices and pipes are left out, and told", async () => {
    const { root, skipped } = await layerOf(
      joined(
        folder("dev/"),
        raw({ name: "dev/sda", type: "4" }),
        raw({ name: "dev/null", type: "3" }),
        raw({ name: "p", type: "6" }),
      ),
    )
    expect(skipped).toEqual(['"dev/sda"', '"dev/null"', '"p"'])
    expect([readdirSync(root), readdirSync(join(root, "dev"))]).toEqual([["dev"], []])
  })

  test("set-user-id goes, owners out of range become nobody's", async () => {
    const { root } = await layerOf(
      writeTar([file("su", "x", { mode: 0o6755 }), file("far", "x", { uid: 100_000, gid: 70_000 })]),
    )
    expect(statSync(join(root, "su")).mode & 0o7777).toBe(0o755)
    const { uid, gid } = statSync(join(root, "far"))
    expect([uid, gid]).toEqual([65_534, 65_534])
  })

  test("an entry that comes twice is the second one, and never written through the first", async () => {
    const { root } = await layerOf(
      writeTar([
        file("a", "first"),
        hardlink("b", "a"),
        file("a", "second"),
        symlink("l", "/etc/passwd"),
        file("l", "mine"),
        symlink("d", "/etc"),
        folder("d/"),
        file("d/passwd", "mine"),
      ]),
    )
    const read = (name: string): string => readFileSync(join(root, name), "utf8")
    expect([read("a"), read("b"), read("l"), read("d/passwd")]).toEqual(["second", "first", "mine", "mine"])
  })

  test("names that are not UTF-8 stay as they are", async () => {
    const { root } = await layerOf(writeTar([file("caf\xe9", "x"), file("gr\xc3\xbcn", "x")]))
    expect(readdirSync(Buffer.from(root), { encoding: "latin1" }).toSorted()).toEqual(["caf\xe9", "gr\xc3\xbcn"])
  })

  test("its digest is that of the archive inside, however it is packed or cut", async () => {
    const archive = writeTar([folder("d/"), file("d/x", "x".repeat(100_000))])
    const zstd = execFileSync("zstd", ["-c", "-q"], { input: archive })
    for (const [packed, size] of [
      [archive, 1],
      [archive, 513],
      [gzipSync(archive), 7],
      [zstd, 11],
    ] as const) {
      if (size === 1 && packed.length > 200_000) continue
      const { digest, root } = await layerOf(packed, size)
      expect(digest).toBe(digestBytes(archive))
      expect(readFileSync(join(root, "d/x")).length).toBe(100_000)
    }
  })

  test.each(["gzip", "zstd"])("damage in the packing is told: %s", async (packing) => {
    const archive = writeTar([file("x", "x".repeat(100_000))])
    const packed = execFileSync(packing, ["-c", "-q"], { input: archive })
    await expect(layerOf(packed.subarray(0, packed.length - 10))).rejects.toThrow(/damaged|ends in the middle/)
    const broken = Buffer.from(packed)
    broken.fill(0xff, 20, 60)
    await expect(layerOf(broken)).rejects.toThrow(Fault)
  })

  test("a tree that GNU tar wrote comes out as it was", async () => {
    const from = temp.at("gnu")
    mkdirSync(join(from, "deep/".repeat(40)), { recursive: true })
    writeFileSync(join(from, "deep/".repeat(40), "n".repeat(200)), "long")
    execFileSync(
      "sh",
      ["-c", "echo x > f; ln f g; ln -s nowhere s; mkdir -m 2750 d; chown 12:34 f; touch -d @1234567890.5 f"],
      { cwd: from },
    )
    for (const format of ["gnu", "pax", "ustar"]) {
      const names = format === "ustar" ? ["f", "g", "s", "d"] : ["."]
      const tar = execFileSync("tar", [`--format=${format}`, "-c", ...names], { cwd: from, maxBuffer: 1e9 })
      const { root } = await layerOf(tar)
      const listed = (at: string): string =>
        execFileSync(
          "find",
          [
            ".",
            "-mindepth",
            "1",
            ...(format === "ustar" ? ["-not", "-path", "./deep*"] : []),
            "-printf",
            "%p %y %m %U %G %Ts %l\n",
          ],
          { cwd: at },
        )
          .toString()
          .split("\n")
          .sort()
          .join("\n")
      expect(listed(root)).toBe(listed(from))
      expect(statSync(join(root, "f")).ino).toBe(statSync(join(root, "g")).ino)
    }
  })
})

describe.skipIf(!isRoot)("any tree", () => {
  const name = fc
    .stringMatching(/^[a-zA-Z0-9 _.\-\x80-\xff"\\]{1,12}$/)
    .filter((text) => !/^\.{1,2}$|^\.wh\./.test(text) && !text.includes("\ufffd"))
  const owner = fc.constantFrom(0, 1, 1000, 65_534)
  const xattrs = fc.uniqueArray(fc.tuple(fc.stringMatching(/^user\.[a-z]{1,8}$/), fc.uint8Array({ maxLength: 40 })), {
    maxLength: 2,
    selector: ([key]) => key,
  })
  const meta = fc.record({ uid: owner, gid: owner, mtime: fc.integer({ min: 0, max: 4_000_000_000 }) })
  const node = fc.record({
    path: fc.array(name, { minLength: 1, maxLength: 4 }),
    kind: fc.constantFrom("file", "folder", "symlink", "hardlink"),
    mode: fc.integer({ min: 0, max: 0o1777 }),
    meta,
    content: fc.uint8Array({ maxLength: 3000 }),
    target: fc.stringMatching(/^[a-z/.]{1,150}$/),
    xattrs,
  })

  test("goes through an archive into a layer unchanged: owners, modes, links, times, attributes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(node, { maxLength: 25 }), fc.integer({ min: 1, max: 3000 }), async (nodes, size) => {
        const tree = new Map<string, Content>()
        const links = new Map<string, string>()
        for (const { path, kind, mode, meta: about, content, target, xattrs: pairs } of nodes) {
          const at = path.join("/")
          const ancestors = path.map((_, depth) => path.slice(0, depth).join("/")).slice(1)
          const isFree = !tree.has(at) && ancestors.every((one) => (tree.get(one)?.kind ?? "folder") === "folder")
          if (!isFree) continue
          for (const one of ancestors) if (!tree.has(one)) tree.set(one, folder(one, { mode: 0o755 }))
          const attributes = new Map(pairs.map(([key, value]) => [key, Buffer.from(value)]))
          const first = [...tree].find(([, entry]) => entry.kind === "file")?.[0]
          if (kind === "file")
            tree.set(at, { ...file(at, "", { mode, ...about, xattrs: attributes }), content: Buffer.from(content) })
          else if (kind === "folder") tree.set(at, folder(at, { mode, ...about, xattrs: attributes }))
          else if (kind === "symlink") tree.set(at, { ...symlink(at, target), ...about })
          else if (first !== undefined) {
            tree.set(at, hardlink(at, first))
            links.set(at, first)
          }
        }
        const { root } = await layerOf(writeTar([...tree.values()]), size)
        const found = await readXattrs(root)
        for (const [at, entry] of tree) {
          const path = Buffer.from(`${root}/${at}`, "latin1")
          const stats = lstatSync(path)
          const original = tree.get(links.get(at) ?? at) ?? entry
          expect(stats.isDirectory()).toBe(original.kind === "folder")
          expect([stats.uid, stats.gid, Math.floor(stats.mtimeMs / 1000)]).toEqual([
            original.uid ?? 0,
            original.gid ?? 0,
            original.mtime ?? 0,
          ])
          if (original.kind === "symlink") expect(readlinkSync(path, "latin1")).toBe(original.target)
          else expect(stats.mode & 0o7777).toBe(original.mode)
          if (original.kind === "file") expect(readFileSync(path)).toEqual(original.content)
          if (links.has(at)) expect(stats.ino).toBe(lstatSync(Buffer.from(`${root}/${links.get(at)}`, "latin1")).ino)
          expect(new Map(found.get(at))).toEqual(new Map(original.xattrs))
        }
        expect(countOf(root)).toBe(tree.size)
      }),
      { numRuns: 60 },
    )
  })
})

describe.skipIf(!isRoot)("any damage", () => {
  test(
    "to an archive gives a layer or a fault, and nothing else happens",
    { timeout: 120_000 + damages * 100 },
    async () => {
      const canary = temp.at("canary")
      mkdirSync(canary)
      writeFileSync(join(canary, "secret"), "canary")
      for (const path of [join(canary, "secret"), canary]) utimesSync(path, 1, 2)
      const whole = joined(
        folder("a/", { uid: 1000, xattrs: new Map([["user.x", Buffer.from("y")]]) }),
        file("a/file", "content"),
        hardlink("a/hard", "a/file"),
        symlink("a/out", canary),
        file(`a/${"long".repeat(40)}`, "long", { mtime: 1.5 }),
        raw({ name: "././@LongLink", type: "L", content: Buffer.from(`${"gnu/".repeat(40)}x\0`) }),
        file("short", "x"),
        file("a/.wh.gone"),
        file("a/.wh..wh..opq"),
      )
      const change = fc.record({
        at: fc.nat(whole.length - 1),
        bytes: fc.oneof(
          fc.uint8Array({ minLength: 1, maxLength: 8 }),
          fc
            .constantFrom("../", "/", "\0", "a/out/", "0000000", "1", "2", "5", "x", "L", "99999999999")
            .map((text) => Buffer.from(text)),
        ),
      })
      const cut = fc.option(fc.nat(whole.length), { freq: 5 })
      await fc.assert(
        fc.asyncProperty(
          fc.array(change, { minLength: 1, maxLength: 4 }),
          cut,
          fc.boolean(),
          async (changes, length, isSummed) => {
            const damaged = Buffer.from(length === null ? whole : whole.subarray(0, length))
            for (const { at, bytes } of changes)
              damaged.set(bytes.slice(0, Math.max(0, damaged.length - at)), Math.min(at, damaged.length))
            if (isSummed) sumUp(damaged)
            const before = portrait(canary)
            const failure = await layerOf(damaged).then(
              () => undefined,
              (thrown: unknown) => thrown,
            )
            if (failure !== undefined) expect(failure).toBeInstanceOf(Fault)
            expect(portrait(canary)).toEqual(before)
          },
        ),
        { numRuns: damages },
      )
      record("damaged-archives", { cases: damages })
    },
  )
})

/** Makes the checksums of all that looks like a header right again, so that damage gets further. */
function sumUp(archive: Buffer): void {
  for (let at = 0; at + 512 <= archive.length; at += 512) {
    const block = archive.subarray(at, at + 512)
    if (block.toString("latin1", 257, 262) !== "ustar") continue
    block.write(`${checksum(block).toString(8).padStart(6, "0")}\0 `, 148, "latin1")
  }
}

function countOf(root: string): number {
  return execFileSync("find", [root, "-mindepth", "1", "-printf", "x"]).length
}
