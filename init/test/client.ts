import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { chmod, copyFile, mkdir, mkdtemp, rm } from "node:fs/promises"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { buildVariant } from "../build.ts"

export type Json = { readonly [key: string]: unknown }
export type Frame = { readonly json: Json } | { readonly tag: number; readonly data: Buffer }

const cache = join(import.meta.dirname, "..", ".cache")
export const build = (variant: Parameters<typeof buildVariant>[0]): Promise<string> => buildVariant(variant, cache)
export const isRoot = process.getuid?.() === 0
/** Whom commands run as: as root somebody else, so that rights are tested for real. */
export const uid = isRoot ? 1000 : (process.getuid?.() ?? 0)
export const gid = isRoot ? 1000 : (process.getgid?.() ?? 0)

export function encode(body: Buffer | string): Buffer {
  const bytes = Buffer.from(body)
  const head = Buffer.alloc(4)
  head.writeUInt32BE(bytes.length)
  return Buffer.concat([head, bytes])
}

/** One connection: frames in, frames out. */
export class Wire implements Disposable {
  readonly socket: Socket
  private buffer = Buffer.alloc(0)
  private readonly frames: Frame[] = []
  private ended = false
  private wake = (): void => {}

  constructor(path: string) {
    this.socket = connect({ path, allowHalfOpen: true })
    this.socket.on("data", (chunk: Buffer) => this.take(chunk))
    this.socket.on("error", () => {})
    this.socket.on("end", () => this.finish())
    this.socket.on("close", () => this.finish())
  }

  private finish(): void {
    this.ended = true
    this.wake()
  }

  private take(chunk: Buffer): void {
    this.buffer = Buffer.concat([this.buffer, chunk])
    while (this.buffer.length >= 4 && this.buffer.length >= 4 + this.buffer.readUInt32BE()) {
      const end = 4 + this.buffer.readUInt32BE()
      const body = this.buffer.subarray(4, end)
      this.buffer = this.buffer.subarray(end)
      if (body[0] === 0x7b) this.frames.push({ json: JSON.parse(body.toString()) as Json })
      else this.frames.push({ tag: body[0] ?? 0, data: body.subarray(1) })
    }
    this.wake()
  }

  send(message: Json): this {
    this.socket.write(encode(JSON.stringify(message)))
    return this
  }

  bytes(data: Buffer | string, tag = 1): this {
    this.socket.write(encode(Buffer.concat([Buffer.from([tag]), Buffer.from(data)])))
    return this
  }

  raw(data: Buffer): this {
    this.socket.write(data)
    return this
  }

  /** The next frame, or undefined once init has closed its side. */
  async next(): Promise<Frame | undefined> {
    while (this.frames.length === 0 && !this.ended) await new Promise<void>((resolve) => (this.wake = resolve))
    return this.frames.shift()
  }

  /** The next JSON frame; output in between is dropped. */
  async event(): Promise<Json> {
    for (;;) {
      const frame = await this.next()
      if (!frame) throw new Error("init closed the connection")
      if ("json" in frame) return frame.json
    }
  }

  /** Output until it contains the text. */
  async until(text: string): Promise<string> {
    let seen = ""
    while (!seen.includes(text)) {
      const frame = await this.next()
      if (!frame) throw new Error(`closed after ${JSON.stringify(seen)}`)
      if ("data" in frame) seen += frame.data.toString()
    }
    return seen
  }

  /** Everything to the end, and by then the connection is closed. */
  async all(): Promise<Result> {
    const result = new Result()
    for (let frame = await this.next(); frame; frame = await this.next()) result.add(frame)
    this.socket.destroy()
    return result
  }

  [Symbol.dispose](): void {
    this.socket.destroy()
  }
}

export class Result {
  readonly events: Json[] = []
  private readonly chunks: { tag: number; data: Buffer }[] = []

  add(frame: Frame): void {
    if ("json" in frame) this.events.push(frame.json)
    else this.chunks.push(frame)
  }

  bytes(...tags: number[]): Buffer {
    const wanted = this.chunks.filter((chunk) => tags.length === 0 || tags.includes(chunk.tag))
    return Buffer.concat(wanted.map((chunk) => chunk.data))
  }

  get out(): string {
    return this.bytes(2, 4).toString()
  }

  get err(): string {
    return this.bytes(3).toString()
  }

  get tags(): number[] {
    return [...new Set(this.chunks.map((chunk) => chunk.tag))]
  }

  get last(): Json {
    return this.events.at(-1) ?? {}
  }
}

export interface Options {
  readonly variant?: "release" | "sanitize"
  readonly profile?: "dev" | "strict"
  /** A command line in front of init's, for example unshare. */
  readonly prefix?: readonly string[]
  readonly user?: string
  /** The socket is made by somebody else and inherited, as from a real host. */
  readonly inherit?: boolean
  readonly forwards?: readonly string[]
}

const listenThenExec = `use Socket; use Fcntl; $^F = 9; my $path = shift; socket(my $s, AF_UNIX, SOCK_STREAM, 0);
bind($s, sockaddr_un($path)); listen($s, 64); open(my $t, "<", "/etc/passwd"); exec @ARGV, "--fd", fileno($s)`

/** A running init, with a folder of its own. */
export class Init implements AsyncDisposable {
  readonly folder: string
  readonly socket: string
  readonly sudoSocket: string
  readonly workspace: string
  readonly program: string
  readonly child: ChildProcess
  stderr = ""

  private constructor(folder: string, program: string, options: Options) {
    this.folder = folder
    this.program = program
    this.socket = join(folder, "init.sock")
    this.sudoSocket = join(folder, "sudo.sock")
    this.workspace = join(folder, "w")
    const { profile = "dev", prefix = [], user = `${uid}:${gid}` } = options
    const before = options.inherit ? ["perl", "-e", listenThenExec, this.socket] : prefix
    const listen = options.inherit ? [] : ["--listen", this.socket]
    const args = [
      ...before,
      program,
      ...listen,
      "--profile",
      profile,
      "--user",
      user,
      "--workspace",
      this.workspace,
      "--sudo-socket",
      this.sudoSocket,
      "--subreaper",
      ...(options.forwards ?? []).flatMap((forward) => ["--forward", forward]),
    ]
    this.child = spawn(args[0] ?? "", args.slice(1), { stdio: ["pipe", "pipe", "pipe"], env: {} })
    this.child.stderr?.on("data", (chunk: Buffer) => (this.stderr += chunk.toString()))
  }

  static async start(options: Options = {}): Promise<Init> {
    const folder = await mkdtemp(join(tmpdir(), "wi-"))
    await chmod(folder, 0o1777) // init may run under a uid of its own
    // Beside its socket: the checkout may lie where other users cannot go, and they call it as sudo.
    const program = join(folder, "warren-init")
    await copyFile(await build(options.variant ?? "release"), program)
    await mkdir(join(folder, "w"))
    await chmod(join(folder, "w"), 0o1777)
    const init = new Init(folder, program, options)
    // The socket appears when init listens; the host proper inherits one instead and never has to look.
    for (;;) {
      if (init.child.exitCode !== null) {
        await rm(folder, { recursive: true, force: true })
        throw new Error(`init ended: ${init.stderr}`)
      }
      const hello = await init.call({ op: "hello" })
      if (hello.last["ev"] === "ok") return init
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  open(message: Json): Wire {
    return new Wire(this.socket).send(message)
  }

  call(message: Json): Promise<Result> {
    return this.open(message).all()
  }

  /** Runs a command line with sh. */
  sh(script: string, more: Json = {}): Promise<Result> {
    return this.call({ op: "spawn", argv: ["/bin/sh", "-c", script], ...more })
  }

  /** Repeats until the check holds; fails with the test's own timeout. */
  async settle<T>(look: () => Promise<T>, good: (value: T) => boolean): Promise<T> {
    for (;;) {
      const value = await look()
      if (good(value)) return value
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed =
      this.child.exitCode !== null || this.child.signalCode !== null ? undefined : once(this.child, "close")
    if (closed) {
      await this.call({ op: "stop", graceMs: 0 }).catch(() => undefined)
      // Ask, wait, force: a test that broke init must not leave it behind.
      const late = setTimeout(() => this.child.kill("SIGKILL"), 5000)
      await closed
      clearTimeout(late)
    }
    await rm(this.folder, { recursive: true, force: true })
    if (/Sanitizer|runtime error/.test(this.stderr)) throw new Error(this.stderr)
  }
}
