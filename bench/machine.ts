import { execFile } from "node:child_process"
import { readFile, realpath } from "node:fs/promises"
import { cpus, loadavg, release, totalmem } from "node:os"
import { promisify } from "node:util"

/** Where the figures come from: without it they mean nothing. */
export interface Machine {
  /** The day it was measured, and what was: the commit, with a + where files differed from it. */
  readonly date: string
  readonly commit: string
  readonly cpu: string
  readonly cores: number
  readonly memoryMB: number
  readonly kernel: string
  readonly node: string
  /** Null when it is not installed. */
  readonly crun: string | null
  /** The file system under Warren's data. */
  readonly dataFs: string
  /** Over 1, 5 and 15 minutes, when the run began. */
  readonly loadAverage: readonly number[]
}

export async function describeMachine(dataFolder: string): Promise<Machine> {
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: await commitHere(),
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryMB: Math.round(totalmem() / 1_000_000),
    kernel: release(),
    node: process.versions.node,
    crun: await crunVersion(),
    dataFs: await fileSystemOf(dataFolder),
    loadAverage: loadavg().map((load) => Number(load.toFixed(2))),
  }
}

async function crunVersion(): Promise<string | null> {
  const said = await saidBy("crun", ["--version"])
  return /crun version (\S+)/.exec(said)?.[1] ?? null
}

async function commitHere(): Promise<string> {
  const commit = (await saidBy("git", ["rev-parse", "--short=12", "HEAD"])).trim()
  const changed = (await saidBy("git", ["status", "--porcelain", "--untracked-files=no"])).trim()
  return commit === "" ? "unknown" : `${commit}${changed === "" ? "" : "+"}`
}

/** What a program printed; nothing where there is none. */
async function saidBy(program: string, args: readonly string[]): Promise<string> {
  return await promisify(execFile)(program, args).then(
    ({ stdout }) => stdout,
    () => "",
  )
}

/** The type of the mount that is nearest above the folder; of two on the same point, the later one is on top. */
async function fileSystemOf(folder: string): Promise<string> {
  const path = `${await realpath(folder)}/`
  const mounts = (await readFile("/proc/self/mounts", "utf8")).split("\n").map((line) => line.split(" "))
  let best = { length: -1, type: "unknown" }
  for (const [, point = "", type = ""] of mounts) {
    const isAbove = path.startsWith(point === "/" ? point : `${point}/`)
    if (isAbove && point.length >= best.length) best = { length: point.length, type }
  }
  return best.type
}
