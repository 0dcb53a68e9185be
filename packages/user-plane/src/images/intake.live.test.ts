import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect, test } from "vitest"
import { Intake } from "./intake.ts"

const mebibyte = new Uint8Array(1024 * 1024).fill(7)
const never = new AbortController().signal

test("what is sent is there, whole and in order, when it is worked on", async () => {
  await using folder = await TempFolder.make()
  let found = Buffer.alloc(0)
  const work = (file: string, tell: (told: { size: number }) => void): Promise<void> => {
    found = readFileSync(file)
    tell({ size: found.length })
    return Promise.resolve()
  }
  await using intake = await Intake.open(folder.path, work, never)
  for (let piece = 0; piece < 3; piece++) await intake.write(new Uint8Array(100_000).fill(piece))
  intake.send()
  expect(await intake.next()).toEqual({ size: 300_000 })
  expect(await intake.next()).toBeUndefined()
  expect([0, 1, 2].map((piece) => found[piece * 100_000 + 50_000])).toEqual([0, 1, 2])
})

test("somebody who leaves while it is being written breaks nothing and leaves nothing", async () => {
  await using folder = await TempFolder.make()
  for (const bytes of [mebibyte.subarray(0, 1_000), mebibyte]) {
    for (let turns = 0; turns < 8; turns++) {
      const intake = await Intake.open(folder.path, () => Promise.resolve(), never)
      const writing = Promise.allSettled([intake.write(bytes), intake.write(bytes), intake.write(bytes)])
      for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate)
      await intake[Symbol.asyncDispose]()
      await writing
    }
  }
  expect(readdirSync(folder.path)).toEqual([])
})

test("a disk that is full is told to whoever sends, and breaks nothing", async () => {
  await using folder = await TempFolder.make()
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=512k", "tmpfs", folder.path])
  try {
    const intake = await Intake.open(folder.path, () => Promise.resolve(), never)
    await expect(intake.write(mebibyte)).rejects.toMatchObject({ code: "limit" })
    await intake[Symbol.asyncDispose]()
    expect(readdirSync(folder.path)).toEqual([])
  } finally {
    execFileSync("umount", [folder.path])
  }
})
