import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { existsSync } from "node:fs"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, Launch } from "./client.ts"
import { launcher, World } from "./world.ts"

/** Not a shim of somebody's, which takes a second to start. */
const python = "/usr/bin/python3"
const isRoot = process.getuid?.() === 0

/** One line for everything below a folder: kind, mode, owner, links, times, device, target, and where its bytes are. */
function describeTree(folder: string): string {
  const found = execFileSync("find", [folder, "-printf", "%P %y %m %U:%G %n %T@ %l %s\\n"]).toString()
  const devices = execFileSync("find", [
    folder,
    "-type",
    "c",
    "-printf",
    "%P ",
    "-exec",
    "stat",
    "-c",
    "%t:%T",
    "{}",
    ";",
  ])
  return found.split("\n").toSorted().join("\n") + devices.toString()
}

/** Names and values of all attributes of everything below, as the kernel keeps them. */
function attributes(folder: string): string {
  const script = `import os, sys
for at, folders, files in os.walk(sys.argv[1]):
    for one in folders + files:
        path = os.path.join(at, one)
        for name in os.listxattr(path, follow_symlinks=False):
            print(os.path.relpath(path, sys.argv[1]).encode(errors="surrogateescape"), name, os.getxattr(path, name, follow_symlinks=False).hex())`
  return execFileSync(python, ["-c", script, folder]).toString().trim().split("\n").toSorted().join("\n")
}

function setAttribute(file: string, name: string, hex: string): void {
  const script =
    "import os, sys; os.setxattr(sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]), follow_symlinks=False)"
  execFileSync(python, ["-c", script, file, name, hex])
}

const le32 = (value: number): string => Buffer.from(Uint32Array.of(value).buffer).toString("hex")
/** user::rw-, user:ID:r--, group::r--, group:ID:r--, mask::r--, other::--- */
const accessList = (user: number, group: number): string =>
  [
    "02000000",
    `01000600${le32(0xffffffff)}`,
    `02000400${le32(user)}`,
    `04000400${le32(0xffffffff)}`,
    `08000400${le32(group)}`,
    `10000400${le32(0xffffffff)}`,
    `20000000${le32(0xffffffff)}`,
  ].join("")
/** cap_net_raw of the user namespace whose root is ID. */
const capability = (root: number): string => `01000003${le32(1 << 13)}${le32(0)}${le32(0)}${le32(0)}${le32(root)}`

describe.runIf(isRoot)("a copy", () => {
  let world: World
  let launch: Launch

  beforeAll(async () => {
    world = await World.make()
    const program = await launcher(path.join(world.root, "bin"))
    launch = new Launch(program, [world.root])
  })
  afterAll(async () => {
    await launch?.end()
    await world.dispose()
  })

  const at = (name: string): string => path.join(world.root, name)
  const sh = (script: string, cwd: string): string => execFileSync("sh", ["-ec", script], { cwd }).toString()
  const copy = (from: string, to: string, more: object = {}): Promise<Answer> =>
    launch.ask("copy", { from: at(from), to: at(to), ...more })

  it("is the same in everything but its name", async () => {
    await mkdir(at("from"))
    const bytes = randomBytes(3_000_001)
    await writeFile(at("from/bytes"), bytes)
    sh(
      `mkdir -p a/b/c empty; chmod 0 a/b/c; chmod 1777 empty; chown 1000:1234 a/b
       echo text > a/text; ln a/text a/b/same; ln a/text again; chmod 4711 a/text; chown 70000:5 a/text
       ln -s /etc/shadow link; ln -s "$(printf 'x%.0s' $(seq 1 200))" long; chown -h 5:6 link
       ln link link-again
       mkfifo pipe; mknod gone c 0 0; mknod null c 1 3; ln gone also-gone
       truncate -s 64M sparse; printf tail | dd of=sparse bs=1 seek=60000000 conv=notrunc status=none
       : > nothing; touch -d 2001-02-03T04:05:06.789 a/b again empty; touch -h -d 1999-01-01 link
       printf 'odd' > "$(printf 'new\\nline \\303\\244 \\377')"`,
      at("from"),
    )
    setAttribute(at("from/empty"), "user.overlay.opaque", "79")
    setAttribute(at("from/bytes"), "trusted.overlay.metacopy", "00ff")
    setAttribute(at("from/bytes"), "security.capability", capability(100_000))
    setAttribute(at("from/bytes"), "system.posix_acl_access", accessList(1000, 1001))
    setAttribute(at("from/link"), "trusted.note", "01")
    const before = describeTree(at("from"))
    expect((await copy("from", "to")).ok).toEqual({})
    expect(describeTree(at("to"))).toBe(before)
    expect(describeTree(at("from"))).toBe(before)
    expect((await readFile(at("to/bytes"))).equals(bytes)).toBe(true)
    expect(attributes(at("from"))).toMatch(/security.capability [^]*trusted.overlay/)
    expect(attributes(at("to"))).toBe(attributes(at("from")))
    expect(sh("stat -c %i a/text a/b/same again | sort -u | wc -l; du -k sparse | cut -f1", at("to"))).toMatch(
      /^1\n[48]\n$/,
    )
    expect(sh("cmp sparse ../from/sparse && echo same", at("to"))).toBe("same\n")
    expect(existsSync(at("to/.warren-links"))).toBe(false)
  })

  it("gives what was one sandbox's to another, wherever an id is written", async () => {
    await mkdir(at("own"))
    sh(
      `echo x > root; echo x > person; echo x > host; ln -s x link; mkdir below
       chown 200000:200000 root; chown 201000:265535 person; chown 265536:199999 host; chown -h 200001:200002 link`,
      at("own"),
    )
    setAttribute(at("own/person"), "system.posix_acl_access", accessList(201_000, 70_000))
    setAttribute(at("own/person"), "security.capability", capability(200_000))
    setAttribute(at("own/below"), "system.posix_acl_default", accessList(200_005, 200_006))
    expect((await copy("own", "other", { base: 200_000, toBase: 400_000 })).ok).toEqual({})
    expect(sh("stat -c '%n %u:%g' *", at("other"))).toBe(
      "below 0:0\nhost 265536:199999\nlink 400001:400002\nperson 401000:465535\nroot 400000:400000\n",
    )
    expect(attributes(at("other"))).toBe(
      [
        `b'below' system.posix_acl_default ${accessList(400_005, 400_006)}`,
        `b'person' security.capability ${capability(400_000)}`,
        `b'person' system.posix_acl_access ${accessList(401_000, 70_000)}`,
      ].join("\n"),
    )
  })

  it("is refused where it makes no sense, and where it may not be", async () => {
    await mkdir(at("small/in"), { recursive: true })
    await writeFile(at("file"), "x")
    for (const [from, to, more, fault] of [
      ["none", "x", {}, { step: "copy", errno: "ENOENT" }],
      ["small", "none/x", {}, { step: "copy", errno: "ENOENT" }],
      ["small", "file", {}, { step: "copy", errno: "EEXIST" }],
      ["file", "x", {}, { step: "copy", errno: "ENOTDIR" }],
      ["small", "x", { base: 5 }, { step: "request" }],
      ["small", "x", { base: -1, toBase: 1 }, { step: "request" }],
      ["small", "../x", {}, { step: "request" }],
    ] as const)
      expect((await copy(from, to, more)).fault, JSON.stringify([from, to, more])).toMatchObject(fault)
    expect((await launch.ask("copy", { from: "/etc", to: at("x") })).fault).toMatchObject({ step: "request" })
    expect((await launch.ask("copy", { from: at("small"), to: "/tmp/x" })).fault).toMatchObject({ step: "request" })
    sh("ln -s small way", world.root)
    expect((await copy("way", "x")).fault).toMatchObject({ errno: "ELOOP" })
    expect(existsSync(at("x"))).toBe(false)
  })

  it("goes as deep as people go, and says so where somebody went deeper", async () => {
    const dig = (levels: number): string =>
      `import os, sys
os.mkdir(sys.argv[1]); os.chdir(sys.argv[1])
for _ in range(${levels}): os.mkdir("d"); os.chdir("d")
open("bottom", "w").write("x")`
    for (const [name, levels] of [
      ["deep", 1000],
      ["deeper", 3000],
    ] as const)
      execFileSync(python, ["-c", dig(levels), at(name)])
    expect((await copy("deep", "deep-copy")).ok).toEqual({})
    expect(sh("find . -name bottom | wc -l", at("deep-copy"))).toBe("1\n")
    expect((await copy("deeper", "deeper-copy")).fault).toMatchObject({ step: "copy", errno: "ENAMETOOLONG" })
    for (const name of ["deep", "deeper", "deep-copy", "deeper-copy"])
      expect((await launch.ask("remove", { path: at(name) })).ok).toEqual({})
  })
})
