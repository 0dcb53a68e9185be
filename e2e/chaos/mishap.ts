import { execFileSync } from "node:child_process"
import { closeSync, mkdtempSync, openSync, readSync, rmSync, truncateSync, writeFileSync, writeSync } from "node:fs"
import { constants, tmpdir } from "node:os"
import { join } from "node:path"

/** In the order of `struct orders` in mishap.c. */
const fields = ["clockMs", "writes", "failFrom", "failTo", "failErrno", "hits", "turns"] as const
type Field = (typeof fields)[number]

const fieldBytes = 8
const lastAt = 64
const allBytes = 512
const forever = 2 ** 52

/** How writes fail: only the one of that number, or that one and all that follow. */
export type Failing = "once" | "on"

/**
 * What goes wrong between a program and its machine, while the program runs: writes below a folder fail, the wall clock jumps. It is a
 * library that is loaded before the program's own, so that everything it asks of the machine is met. Children have nothing of it.
 */
export class Mishap implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "wx-"))
  readonly #fd: number

  constructor() {
    const source = join(import.meta.dirname, "mishap.c")
    execFileSync("cc", ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", this.#library, source, "-ldl"])
    writeFileSync(this.#file, "")
    truncateSync(this.#file, allBytes)
    this.#fd = openSync(this.#file, "r+")
  }

  /** For a program whose writes below `folder` can fail. */
  env(folder: string): NodeJS.ProcessEnv {
    return { LD_PRELOAD: this.#library, MISHAP_FILE: this.#file, MISHAP_BELOW: `${folder}/` }
  }

  /** The write that is the n-th from now. */
  failAt(n: number, how: Failing = "once", errno: "ENOSPC" | "EROFS" | "EIO" = "ENOSPC"): void {
    const first = this.#get("writes") + n
    this.heal()
    writeSync(this.#fd, Buffer.alloc(allBytes - lastAt), 0, allBytes - lastAt, lastAt)
    this.#set("hits", 0)
    this.#set("failErrno", constants.errno[errno])
    this.#set("failTo", how === "once" ? first : forever)
    this.#set("failFrom", first)
  }

  /** There is room again. What was hit stays known. */
  heal(): void {
    this.#set("failFrom", 0)
  }

  /** Wall clock minus what it is. */
  set clockMs(ms: number) {
    this.#set("clockMs", ms)
  }

  get writes(): number {
    return this.#get("writes")
  }

  get hits(): number {
    return this.#get("hits")
  }

  /** How often the program's loop has turned. */
  get turns(): number {
    return this.#get("turns")
  }

  /** The first that failed. */
  get hit(): string {
    const words = Buffer.alloc(allBytes - lastAt)
    readSync(this.#fd, words, 0, words.length, lastAt)
    return words.toString("utf8", 0, words.indexOf(0))
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd)
    rmSync(this.#folder, { recursive: true, force: true })
  }

  get #library(): string {
    return join(this.#folder, "mishap.so")
  }

  get #file(): string {
    return join(this.#folder, "orders")
  }

  #get(field: Field): number {
    const bytes = Buffer.alloc(fieldBytes)
    readSync(this.#fd, bytes, 0, fieldBytes, fields.indexOf(field) * fieldBytes)
    return Number(bytes.readBigInt64LE())
  }

  #set(field: Field, value: number): void {
    const bytes = Buffer.alloc(fieldBytes)
    bytes.writeBigInt64LE(BigInt(Math.round(value)))
    writeSync(this.#fd, bytes, 0, fieldBytes, fields.indexOf(field) * fieldBytes)
  }
}
