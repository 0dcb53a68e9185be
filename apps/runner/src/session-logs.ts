import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { isId } from "@warren/base/id.ts"
import { logFile } from "./log-file.ts"

/** Files kept; the ones not written to for longest go. */
const filesMax = 1_000
const openMax = 256

/** What happened to each session, in a file of its own that outlives it. */
export function sessionLogs(folder: string): (session: string, line: string) => void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  thin(folder)
  const writers = new Map<string, (line: string) => void>()
  let made = 0
  return (session, line) => {
    if (!isId("ses", session)) return
    let write = writers.get(session)
    if (!write) {
      if (writers.size >= openMax) writers.clear()
      if (++made % openMax === 0) thin(folder)
      write = logFile(join(folder, `${session}.log`))
      writers.set(session, write)
    }
    write(line)
  }
}

function thin(folder: string): void {
  const files = readdirSync(folder)
  if (files.length <= filesMax) return
  const byAge = files
    .map((name) => ({ path: join(folder, name), at: statSync(join(folder, name)).mtimeMs }))
    .toSorted((a, b) => b.at - a.at)
  for (const { path } of byAge.slice(filesMax)) rmSync(path, { force: true })
}
