import { gzipSync } from "node:zlib"
import { file, folder, hardlink, joined, pax, raw, symlink, type Content } from "./archives.ts"

interface Hostile {
  readonly archive: Buffer
  /** The fault must say this. */
  readonly says: string
}

const zeros = (bytes: number): Buffer => Buffer.alloc(bytes)

/** Archives that want out, or more than their share. `canary` is a folder they must not touch. */
export function hostileArchives(canary: string): Readonly<Record<string, Hostile>> {
  const up = `../../../../../../../..${canary}`
  const refuse = (says: string, ...parts: (Buffer | Content)[]): Hostile => ({ archive: joined(...parts), says })
  const quoted = (name: string): string => JSON.stringify(name)
  return {
    "a name with ..": refuse(quoted(`${up}/new`), file(`${up}/new`, "x")),
    "a name with .. in the middle": refuse(quoted("a/../../x"), folder("a/"), file("a/../../x", "x")),
    "a name that is only ..": refuse(quoted(".."), folder("..")),
    "an absolute name": refuse(quoted(`${canary}/new`), file(`${canary}/new`, "x")),
    "an absolute folder": refuse(quoted(`${canary}/dir/`), folder(`${canary}/dir/`, { mode: 0o777 })),
    "an empty name": refuse(quoted(""), raw({ name: "", type: "0" })),
    "a file through an absolute link": refuse(quoted("out/new"), symlink("out", canary), file("out/new", "x")),
    "a file through a relative link": refuse(quoted("out/new"), symlink("out", up), file("out/new", "x")),
    "a file through two links": refuse(
      quoted("a/b/new"),
      folder("a/"),
      symlink("a/b", "../c"),
      symlink("c", canary),
      file("a/b/new", "x"),
    ),
    "a folder through a link": refuse(quoted("out/dir/"), symlink("out", canary), folder("out/dir/")),
    "a link through a link": refuse(quoted("out/link"), symlink("out", canary), symlink("out/link", "/etc")),
    "a hard link through a link": refuse(
      quoted("out/link"),
      file("x", "x"),
      symlink("out", canary),
      hardlink("out/link", "x"),
    ),
    "a hard link to the outside": refuse(quoted("h"), hardlink("h", `${canary}/secret`)),
    "a hard link to above": refuse(quoted("h"), hardlink("h", `${up}/secret`)),
    "a hard link to the outside through a link": refuse(
      quoted("h"),
      symlink("out", canary),
      hardlink("h", "out/secret"),
    ),
    "a hard link to nothing": refuse(quoted("h"), hardlink("h", "nowhere")),
    "a hard link to itself": refuse(quoted("h"), file("h", "x"), hardlink("h", "h")),
    "a hard link to a folder": refuse(quoted("h"), folder("d/"), hardlink("h", "d")),
    "a hard link to the top": refuse(quoted("h"), hardlink("h", ".")),
    "a folder in place of a link, then through the link again": refuse(
      quoted("d/x"),
      folder("d/"),
      { ...symlink("d", canary) },
      file("d/x", "x"),
    ),
    "a folder that is not empty, replaced by a link": refuse(
      quoted("d"),
      folder("d/"),
      file("d/x", "x"),
      symlink("d", canary),
    ),
    "the top replaced by a link": refuse(quoted("./"), symlink("./", canary)),
    "an extended header that moves a good name out": refuse(
      quoted(`${up}/new`),
      pax({ path: `${up}/new` }),
      file("innocent", "x"),
    ),
    "an extended header that moves a link's target out": refuse(
      quoted("h"),
      file("x", "x"),
      pax({ linkpath: `${canary}/secret` }),
      hardlink("h", "x"),
    ),
    "a GNU long name that leads out": refuse(
      quoted(`${up}/new`),
      raw({ name: "././@LongLink", type: "L", content: Buffer.from(`${up}/new\0`) }),
      file("innocent", "x"),
    ),
    "a name with NUL": refuse("NUL", pax({ path: `a\0/../../x` }), file("innocent", "x")),
    "a global header that names everything": refuse("path", pax({ path: `${up}/new` }, "g"), file("innocent", "x")),
    "two extended headers for one entry": refuse(
      "second header",
      pax({ path: "a" }),
      pax({ path: "b" }),
      file("innocent", "x"),
    ),
    "an extended header for nothing": refuse(quoted("before"), file("before"), pax({ path: "a" })),
    "an extended header with a wrong length": refuse(
      quoted("before"),
      file("before"),
      raw({ name: "pax", type: "x", content: Buffer.from("999 path=a\n") }),
      file("innocent"),
    ),
    "a size that is no number": refuse(quoted("innocent"), pax({ size: "-1" }), file("innocent", "x")),
    "a size beyond the end": refuse(
      quoted("innocent"),
      pax({ size: "9007199254740991" }),
      raw({ name: "innocent", type: "0" }),
    ),
    "a size beyond every number": refuse(
      quoted("innocent"),
      pax({ size: "99999999999999999999" }),
      file("innocent", "x"),
    ),
    "a wrong checksum": {
      archive: Buffer.concat([joined(file("before")).subarray(0, 512), Buffer.alloc(512, 0x41)]),
      says: quoted("before"),
    },
    "something after the end": {
      archive: Buffer.concat([joined(file("before")).subarray(0, 1024), joined(file("after", "x"))]),
      says: quoted("before"),
    },
    "an archive cut short": { archive: joined(file("cut", "x".repeat(2000))).subarray(0, 1500), says: quoted("cut") },
    "a link with bytes": refuse(quoted("l"), raw({ name: "l", type: "2", target: "x", content: zeros(512) })),
    "a folder with bytes": refuse(quoted("d/"), raw({ name: "d/", type: "5", content: zeros(512) })),
    "a link to no name": refuse(quoted("l"), symlink("l", "")),
    "a sparse file, GNU's way": refuse(quoted("s"), raw({ name: "s", type: "S" })),
    "a sparse file, the extended way": refuse(quoted("s"), pax({ "GNU.sparse.major": "1" }), file("s", "x")),
    "a type nobody knows": refuse(quoted("v"), raw({ name: "v", type: "V" })),
    "a whiteout of ..": refuse(quoted("a/.wh..."), folder("a/"), file("a/.wh...")),
    "a whiteout of .": refuse(quoted("a/.wh.."), folder("a/"), file("a/.wh..")),
    "a whiteout of nothing": refuse(quoted(".wh."), file(".wh.")),
    "a whiteout through a link": refuse(quoted("out/.wh.secret"), symlink("out", canary), file("out/.wh.secret")),
    "an opaque mark through a link": refuse(
      quoted("out/.wh..wh..opq"),
      symlink("out", canary),
      file("out/.wh..wh..opq"),
    ),
    "something below a whiteout": refuse(quoted(".wh.a/x"), file(".wh.a/x", "x")),
    "a whiteout that is a link": refuse(quoted(".wh.a"), symlink(".wh.a", canary)),
    "a whiteout with bytes": refuse(quoted(".wh.a"), file(".wh.a", "x")),
    "overlayfs's own attributes": refuse(
      quoted("d/"),
      folder("d/", { xattrs: new Map([["user.overlay.redirect", Buffer.from("/etc")]]) }),
    ),
    "the kernel's overlay attributes": refuse(
      quoted("d/"),
      folder("d/", { xattrs: new Map([["trusted.overlay.opaque", Buffer.from("y")]]) }),
    ),
    "an attribute that breaks its list": refuse(
      quoted("x"),
      file("x", "x", { xattrs: new Map([["user.a\n# file: /etc/passwd\nuser.b", Buffer.from("y")]]) }),
    ),
    "a name too long": refuse("longer than", file(`${"a/".repeat(30)}${"n".repeat(256)}`, "x")),
    "a path too long": refuse("longer than", file("abc/".repeat(1100), "x")),
    "folders too deep": refuse("deeper than", file(`${"d/".repeat(200)}x`, "x")),
    "a bomb": { archive: gzipSync(joined(file("bomb", "\0".repeat(4_000_000)))), says: quoted("bomb") },
    "a bomb of names": {
      archive: gzipSync(joined(...Array.from({ length: 1001 }, (_, index) => file(`f${index}`)))),
      says: quoted("f1000"),
    },
    "bytes that are no archive": { archive: Buffer.from("PK\x03\x04".repeat(300)), says: "at its beginning" },
  }
}
