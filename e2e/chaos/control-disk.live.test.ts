import { copyFileSync, rmSync, statSync, truncateSync } from "node:fs"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import Sqlite from "libsql"
import { describe, expect, it } from "vitest"
import { dist } from "../runner/home.ts"
import { record } from "../security/results.ts"
import { ControlDoor } from "./control-door.ts"
import { SmallDisk } from "./small-disk.ts"

/** The disk is full after so many pages: each write of a request in turn is the one that fails. */
const pagesMost = Number(process.env["WARREN_PAGES"] ?? 3)

async function faultOf(work: Promise<unknown>): Promise<Fault | undefined> {
  return work.then(
    () => undefined,
    (failure: unknown) => Fault.from(failure),
  )
}

describe.skipIf(process.getuid?.() !== 0)(
  "a control plane whose database cannot be written",
  { timeout: 300_000 },
  () => {
    it("refuses with words and a hint, forgets nothing, and goes on by itself", async () => {
      using disk = new SmallDisk(16)
      const file = join(disk.folder, "control/control.db")
      let door = await ControlDoor.start(disk.folder, dist)
      const known: string[] = []
      const make = async (label: string): Promise<Fault | undefined> => {
        const fault = await faultOf(door.post("/v1/tokens", { label, scopes: ["account:read"] }))
        if (!fault) known.push(label)
        return fault
      }
      const labels = async (): Promise<unknown[]> => (await door.items("/v1/tokens")).map((one) => one["label"])
      const told = new Map<string, number>()
      try {
        expect(await make("before")).toBeUndefined()
        for (let pages = 0; pages <= pagesMost; pages++) {
          disk.fill(pages)
          // Where only the audit log found no room it may be made, and is not told to be.
          const fault = await make(`full-${pages}`)
          if (fault?.code !== "unavailable" && fault)
            expect(fault).toMatchObject({ code: "limit", hint: expect.stringContaining("room") })
          const outcome = fault?.code ?? "made"
          told.set(outcome, (told.get(outcome) ?? 0) + 1)
          // What only reads goes on.
          expect(await labels()).toEqual(expect.arrayContaining(known))
          disk.empty()
          expect(await make(`again-${pages}`)).toBeUndefined()
        }
        // Another program holds it for longer than anybody waits.
        const other = new Sqlite(file)
        other.exec("BEGIN IMMEDIATE")
        const fault = await make("busy")
        other.exec("ROLLBACK")
        other.close()
        expect(fault).toMatchObject({ code: "unavailable", hint: expect.any(String) })
        expect(await make("free")).toBeUndefined()
        expect(await labels()).toEqual(expect.arrayContaining(known))
        await door[Symbol.asyncDispose]()
        door = await ControlDoor.start(disk.folder, dist)
        expect(await labels()).toEqual(expect.arrayContaining(known))
        expect(await door.get("/v1/audit/verify")).toMatchObject({ isWhole: true })
        record("disk-full-control", {
          cases: pagesMost + 2,
          refused: told.get("limit") ?? 0,
          waited: told.get("waits") ?? 0,
        })
      } finally {
        await door[Symbol.asyncDispose]()
      }
    })

    it("does not start on one that is cut or cannot be written, says why, and starts when it is whole again", async () => {
      using disk = new SmallDisk(16)
      const file = join(disk.folder, "control/control.db")
      await using first = await ControlDoor.start(disk.folder, dist)
      for (let n = 0; n < 20; n++) await first.post("/v1/tokens", { label: `t${n}`, scopes: ["account:read"] })
      await first[Symbol.asyncDispose]()
      copyFileSync(file, join(disk.folder, "kept.db"))
      truncateSync(file, Math.floor(statSync(file).size / 8192) * 4096)
      expect(await faultOf(ControlDoor.start(disk.folder, dist))).toMatchObject({
        message: expect.stringMatching(/damaged|malformed|database/),
      })
      for (const end of ["", "-wal", "-shm"]) rmSync(file + end, { force: true })
      copyFileSync(join(disk.folder, "kept.db"), file)
      disk.allow(false)
      expect(await faultOf(ControlDoor.start(disk.folder, dist))).toMatchObject({
        message: expect.stringMatching(/read-?only|written|EROFS/i),
      })
      disk.allow(true)
      await using again = await ControlDoor.start(disk.folder, dist)
      expect((await again.items("/v1/tokens")).filter((one) => /^t\d+$/.test(String(one["label"])))).toHaveLength(20)
    })
  },
)
