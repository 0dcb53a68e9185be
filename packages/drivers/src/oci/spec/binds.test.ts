import { describe, expect, it } from "vitest"
import { bindsOf, type BindInput } from "./binds.ts"
import { etcFiles } from "./etc-files.ts"

const input: BindInput = {
  profile: "dev",
  isRootReadOnly: false,
  init: "/opt/warren/init",
  etcFolder: "/data/sbx/etc",
  asked: [{ from: "/data/workspace", to: "/workspace", readOnly: false }],
}
const ask = (...targets: readonly string[]) => ({
  ...input,
  asked: targets.map((to) => ({ from: "/data/x", to, readOnly: true })),
})

describe("binds", () => {
  it("are ours first and read-only, then what was asked for", () => {
    expect(bindsOf(input)).toEqual([
      { from: "/opt/warren/init", to: "/run/warren/init", readOnly: true, idmap: true },
      { from: "/opt/warren/init", to: "/usr/local/bin/sudo", readOnly: true, idmap: true },
      { from: "/data/sbx/etc/resolv", to: "/etc/resolv.conf", readOnly: true, idmap: true },
      { from: "/data/sbx/etc/hosts", to: "/etc/hosts", readOnly: true, idmap: true },
      { from: "/data/sbx/etc/hostname", to: "/etc/hostname", readOnly: true, idmap: true },
      { from: "/data/workspace", to: "/workspace", readOnly: false, idmap: true },
    ])
  })

  it("have the egress proxy's folder, read-only, when there is one", () => {
    const folder = { from: "/data/egress", to: "/run/warren/egress", readOnly: true, idmap: false }
    expect(bindsOf({ ...input, egressFolder: "/data/egress" })).toContainEqual(folder)
  })

  it("have no sudo in strict", () => {
    expect(bindsOf({ ...input, profile: "strict" }).map(({ to }) => to)).not.toContain("/usr/local/bin/sudo")
  })

  it.each([
    ["/"],
    ["/proc"],
    ["/proc/sys"],
    ["/dev/shm/x"],
    ["/sys"],
    ["/tmp"],
    ["/tmp/x"],
    ["/run"],
    ["/run/warren"],
    ["/run/warren/init"],
    ["/etc"],
    ["/etc/hosts"],
    ["/usr"],
    ["/usr/local/bin/sudo"],
    ["/a/../etc"],
    ["/a//b"],
    ["/a/"],
    ["a"],
    [""],
    ["/a\0b"],
    ["/a\nb"],
    ["/a:b"],
    ["/a,b"],
    ["/./a"],
  ])("are refused at %j", (to) => {
    expect(() => bindsOf(ask(to))).toThrow(expect.objectContaining({ code: "invalid" }))
  })

  it.each(["a", "/a/../b", "/a//b", "/a:b", "/a\0b"])("are refused from %j", (from) => {
    const asked = [{ from, to: "/a", readOnly: true }]
    for (const bad of [{ asked }, { init: from }, { etcFolder: from }, { egressFolder: from }])
      expect(() => bindsOf({ ...input, ...bad })).toThrow(/is not a plain absolute path/)
  })

  it("are refused when one hides another", () => {
    expect(() => bindsOf(ask("/a", "/a"))).toThrow(/collides/)
    expect(() => bindsOf(ask("/a", "/a/b"))).toThrow(/collides/)
    expect(() => bindsOf(ask("/a/b", "/a"))).toThrow(/collides/)
    expect(bindsOf(ask("/a", "/ab", "/home/user/.cache"))).toHaveLength(8)
  })

  it("are refused below the home that a read-only root has in memory", () => {
    expect(() => bindsOf({ ...ask("/home/user/.cache"), isRootReadOnly: true })).toThrow(/collides/)
    expect(() => bindsOf({ ...ask("/home"), isRootReadOnly: true })).toThrow(/collides/)
  })
})

describe("files in /etc", () => {
  it("name the sandbox and its name servers", () => {
    const files = etcFiles("box", ["10.0.0.1", "fd00::1"])
    expect(files.resolv).toBe("nameserver 10.0.0.1\nnameserver fd00::1\noptions timeout:2 attempts:2\n")
    expect(files.hosts).toContain("127.0.1.1 box\n")
    expect(files.hostname).toBe("box\n")
  })

  it.each(["", "x", "1.1.1.1\nsearch evil", "1.1.1"])("take no other address: %j", (address) => {
    expect(() => etcFiles("box", [address])).toThrow(expect.objectContaining({ code: "invalid" }))
  })
})
