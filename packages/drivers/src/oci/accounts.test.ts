import { expect, test } from "vitest"
import { accountFiles } from "./accounts.ts"

const passwd = `root:x:0:0:Root of everything,,555-1234:/root:/bin/zsh
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
postgres:x:107:115:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash
impostor:x:0:0::/root:/bin/bash
gnats:x:42:41::/var/lib/gnats:/usr/sbin/nologin
anna:$6$hash:1001:1001:Anna:/home/anna:/bin/bash
nonsense
`
const group = "root:x:0:anna\nssl-cert:x:112:postgres,anna\nanna:x:1001:\nshadow:x:42:anna\n"

test("packages' accounts come along; persons, members, shells, words and passwords do not", () => {
  const files = accountFiles({ passwd, group })
  expect(files["passwd"]).toContain("\npostgres:x:107:115::/var/lib/postgresql:/usr/sbin/nologin")
  expect(files["group"]).toContain("\nssl-cert:x:112:")
  expect(Object.values(files).join("\n")).not.toMatch(/anna|impostor|zsh|555|\$6\$|gnats|nonsense/)
  for (const name of ["passwd", "group"]) {
    const ids = (files[name] ?? "").split("\n").map((line) => line.split(":")[2])
    expect(new Set(ids).size).toBe(ids.length)
  }
  expect(files["shadow"]).toMatch(/^postgres:\*:/m)
  expect((files["shadow"] ?? "").split("\n")).toHaveLength((files["passwd"] ?? "").split("\n").length)
  expect(accountFiles({ passwd: "", group: "" })["passwd"]).toContain("user:x:1000:1000::/home/user:/bin/bash")
})
