import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Clock } from "@warren/base/clock.ts"
import type { Log } from "@warren/base/log.ts"
import { z } from "zod"
import { isSameText, type AccessTokens } from "../access-token.ts"
import { bytesOf, parsed } from "../body.ts"
import type { Plane } from "../plane.ts"
import { apiRefusal } from "../refusal.ts"
import type { Sandbox, Sandboxes } from "../sandboxes.ts"
import { enveloped, streamAnswer, unaryAnswer, unaryRefusal } from "./connect.ts"
import { download, upload } from "./files.ts"
import { filesystem, ListDir, Move, Place, Watch } from "./filesystem.ts"
import { Inside } from "./inside.ts"
import { environment, usage } from "./machine.ts"
import { OnProcess, processes, SendInput, SendSignal, Start, Update } from "./process.ts"
import { isExpired, isSigned, type Signed } from "./signature.ts"
import { Watchers } from "./watchers.ts"

const messageBytesMax = 16 * 1024 * 1024
/** Where a client says nothing. */
const keepaliveS = 90
const timeoutMsMax = 2 ** 31 - 1

export interface EnvdParts {
  readonly sandboxes: Sandboxes
  readonly tokens: AccessTokens
  readonly clock: Clock
  readonly log: Log
}

/** A request to the program that is in every sandbox of theirs. In ours it is not: init does what is asked. */
export interface EnvdAsked {
  readonly plane: Plane
  readonly sandbox: Sandbox
  readonly request: Request
  /** Without what was before it. */
  readonly path: string
  readonly query: URLSearchParams
  over: () => void
  readonly cut: AbortSignal
}

type Unary = (inside: Inside, body: Buffer) => Promise<object>
type Stream = (inside: Inside, body: Buffer, timeoutMs: number) => AsyncGenerator<object, void, void>

export class EnvdDoor {
  readonly #parts: EnvdParts
  readonly #watchers: Watchers

  constructor(parts: EnvdParts) {
    this.#parts = parts
    this.#watchers = new Watchers(parts.clock)
  }

  /** Every path there is something at. */
  get paths(): readonly string[] {
    return ["/health", "/files", "/metrics", "/envs", ...Object.keys(this.#unary), ...Object.keys(streams)]
  }

  async answer(asked: EnvdAsked): Promise<Response> {
    const { path, request } = asked
    if (request.method === "OPTIONS") return new Response(null, { status: 204 })
    if (path === "/health") return new Response(null, { status: 204 })
    try {
      if (path === "/files") return await this.#files(asked)
      this.#authorise(asked)
      if (path === "/metrics") return Response.json(await usage(this.#inside(asked)))
      if (path === "/envs") return Response.json(await environment(this.#inside(asked)))
      if (request.method === "POST" && path.includes(".")) return await this.#rpc(asked)
      throw new Fault("not_found", `there is no ${path}`)
    } catch (thrown) {
      return this.#refuse(asked, thrown)
    }
  }

  #refuse({ path }: EnvdAsked, thrown: unknown): Response {
    const fault = Fault.from(thrown)
    if (fault.code === "internal") {
      const stack = thrown instanceof Error ? thrown.stack : undefined
      this.#parts.log("error", "e2b.bug", { path, message: messageOf(thrown), stack })
    }
    if (path.includes(".")) return unaryRefusal(fault)
    const refusal = apiRefusal(fault)
    // Theirs has a status of its own for a disk that is full.
    const status = fault.code === "limit" && path === "/files" ? 507 : refusal.code
    return Response.json({ ...refusal, code: status }, { status })
  }

  #authorise({ sandbox, request }: EnvdAsked): void {
    const token = request.headers.get("x-access-token") ?? ""
    if (!isSameText(token, this.#parts.tokens.ofSandbox(sandbox.id)))
      throw new Fault("unauthenticated", "unauthorized access, please provide a valid access token")
  }

  async #files(asked: EnvdAsked): Promise<Response> {
    const { query, request } = asked
    const signature = query.get("signature")
    if (signature === null) this.#authorise(asked)
    else this.#checkSignature(asked, signature)
    const inside = this.#inside(asked, query.get("username") ?? undefined)
    const path = query.get("path") ?? undefined
    if (request.method === "POST") return Response.json(await upload(inside, request, path))
    if (request.method === "GET") return download(inside, request, path ?? "")
    throw new Fault("invalid", `files are read with GET and written with POST`)
  }

  #checkSignature({ query, request, sandbox }: EnvdAsked, signature: string): void {
    const signed = signedBy(query, request.method, signature)
    if (!isSigned(signed, this.#parts.tokens.ofSandbox(sandbox.id)))
      throw new Fault("unauthenticated", "invalid signature")
    if (isExpired(signed, this.#parts.clock.now())) throw new Fault("unauthenticated", "signature is already expired")
  }

  #inside({ plane, sandbox, cut }: EnvdAsked, user?: string): Inside {
    return new Inside(plane.until(cut), sandbox, user)
  }

  async #rpc(asked: EnvdAsked): Promise<Response> {
    const { path, request } = asked
    const inside = this.#inside(asked, userOf(request.headers.get("authorization")))
    const body = await bytesOf(request, messageBytesMax)
    const unary = this.#unary[path]
    if (unary) return unaryAnswer(await unary(inside, body))
    const stream = streams[path]
    if (!stream) throw new Fault("unsupported", `there is no ${path}`)
    const { keepalive, run } = stream
    const keepaliveMs = (Number(request.headers.get("keepalive-ping-interval")) || keepaliveS) * 1000
    const { cut, over } = asked
    // From here on it is the stream that says when it is over.
    asked.over = () => undefined
    return streamAnswer(run(inside, enveloped(body), timeoutOf(request)), {
      ...{ keepalive, keepaliveMs, cut, over, log: this.#parts.log },
    })
  }

  readonly #unary: Readonly<Record<string, Unary | undefined>> = {
    "/process.Process/List": (inside) => processes.list(inside),
    "/process.Process/SendInput": (inside, body) => processes.sendInput(inside, parsed(SendInput, body)),
    "/process.Process/CloseStdin": (inside, body) => processes.closeStdin(inside, parsed(OnProcess, body)),
    "/process.Process/SendSignal": (inside, body) => processes.sendSignal(inside, parsed(SendSignal, body)),
    "/process.Process/Update": (inside, body) => processes.update(inside, parsed(Update, body)),
    "/filesystem.Filesystem/Stat": (inside, body) => filesystem.stat(inside, parsed(Place, body)),
    "/filesystem.Filesystem/MakeDir": (inside, body) => filesystem.makeDir(inside, parsed(Place, body)),
    "/filesystem.Filesystem/Move": (inside, body) => filesystem.move(inside, parsed(Move, body)),
    "/filesystem.Filesystem/ListDir": (inside, body) => filesystem.listDir(inside, parsed(ListDir, body)),
    "/filesystem.Filesystem/Remove": (inside, body) => filesystem.remove(inside, parsed(Place, body)),
    "/filesystem.Filesystem/CreateWatcher": (inside, body) => this.#watchers.create(inside, parsed(Watch, body)),
    "/filesystem.Filesystem/GetWatcherEvents": async (inside, body) =>
      this.#watchers.take(inside, parsed(Watcher, body)),
    "/filesystem.Filesystem/RemoveWatcher": async (inside, body) =>
      this.#watchers.remove(inside, parsed(Watcher, body)),
  }
}

const Watcher = z.object({ watcherId: z.string() })

const streams: Readonly<Record<string, { readonly keepalive: object; readonly run: Stream } | undefined>> = {
  "/process.Process/Start": {
    keepalive: { event: { keepalive: {} } },
    run: (inside, body, timeoutMs) => processes.start(inside, parsed(Start, body), timeoutMs),
  },
  "/process.Process/Connect": {
    keepalive: { event: { keepalive: {} } },
    run: (inside, body) => processes.connect(inside, parsed(OnProcess, body)),
  },
  "/filesystem.Filesystem/WatchDir": {
    keepalive: { keepalive: {} },
    run: (inside, body) => filesystem.watchDir(inside, parsed(Watch, body)),
  },
}

/** What a signature was made for, by a request that has one. */
export function signedBy(query: URLSearchParams, method: string, signature: string): Signed {
  return {
    ...{ path: query.get("path") ?? "", user: query.get("username") ?? "", signature },
    operation: method === "POST" ? "write" : "read",
    expiration: query.get("signature_expiration") ?? undefined,
  }
}

/** `Basic`, with a name and no password: who it is was checked otherwise, and this is only whom to be inside. */
function userOf(header: string | null): string | undefined {
  const [scheme = "", value = ""] = (header ?? "").split(" ")
  if (scheme.toLowerCase() !== "basic") return undefined
  return Buffer.from(value, "base64").toString().split(":")[0]
}

function timeoutOf(request: Request): number {
  const ms = Number(request.headers.get("connect-timeout-ms") ?? 0)
  return Number.isFinite(ms) && ms > 0 ? Math.min(Math.ceil(ms), timeoutMsMax) : 0
}
