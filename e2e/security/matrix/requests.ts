import { openApi } from "@warren/protocol/http/openapi.ts"
import { publicCalls } from "@warren/protocol/control-plane.ts"
import type { Row } from "./rows.ts"

/** What of somebody's a request is made about. */
export interface Things {
  readonly user: string
  readonly session: string
  readonly sandbox: string
  readonly workspace: string
  readonly secret: string
  readonly memory: string
  readonly snapshot: string
  readonly token: string
  readonly pid: number
}

export interface Asking {
  readonly path: string
  readonly body?: string
  readonly form?: FormData
}

interface Operation {
  readonly parameters?: readonly { name: string; in: string; required?: boolean; example?: unknown }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example?: unknown }>> }
}

const document = openApi(publicCalls, { version: "1" }) as { paths: Record<string, Record<string, Operation>> }

/** A request that would do what its route is for, to what is somebody's, if it were let through. */
export function askingFor({ method, path }: Row, things: Things): Asking {
  const operation = document.paths[path]?.[method.toLowerCase()] ?? {}
  const query = (operation.parameters ?? [])
    .filter(
      (one) => one.in === "query" && (one.required === true || one.name === "session" || one.name === "sessionId"),
    )
    .map(({ name, example }) => `${name}=${encodeURIComponent(given(name, things) ?? String(example ?? "x"))}`)
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(named(path, name, things)))
  if (path.endsWith("/fs/upload")) return { path: filled, form: uploadOf("planted") }
  if (path.startsWith("/sandkasten/") && path.endsWith("/fs/read")) return { path: `${filled}?path=planted` }
  const body = bodyOf(method, path, operation, things)
  return { path: filled + (query.length > 0 ? `?${query.join("&")}` : ""), ...(body === undefined ? {} : { body }) }
}

function given(name: string, { session, pid }: Things): string | undefined {
  const known: Record<string, string> = { session, sessionId: session, path: "/etc/hostname", pid: String(pid) }
  return known[name]
}

/** What a name in a path stands for is said by what comes before it. */
function named(path: string, name: string, things: Things): string {
  const before = path.split(`/{${name}}`)[0]?.split("/").at(-1) ?? ""
  if (name === "session") return things.session
  if (path.startsWith("/e2b/") && before === "sandboxes") return things.sandbox
  const owned: Record<string, string> = {
    sessions: things.session,
    workspaces: things.workspace,
    volumes: things.workspace,
    volumecontent: things.workspace,
    secrets: things.secret,
    memories: things.memory,
    snapshots: things.snapshot,
    tokens: things.token,
    users: things.user,
    chats: `cht_${"0".repeat(20)}`,
    "sign-ins": `sin_${"0".repeat(20)}`,
    invites: `inv_${"0".repeat(20)}`,
    processes: String(things.pid),
    ports: "8000",
    services: "vscode",
    compare: things.session,
    hash: "0123456789abcdef",
    key: "0".repeat(20),
  }
  return owned[before] ?? owned[name] ?? "x"
}

function uploadOf(path: string): FormData {
  const form = new FormData()
  form.set("path", path)
  form.set("file", new Blob(["x"]), path)
  return form
}

/** Bodies of doors that have no contract of ours. */
function doorBody(path: string, { session, sandbox, workspace }: Things): object {
  if (path.startsWith("/valet/")) {
    const needed = { sessionId: workspace, doWsUrl: "ws://x", runnerToken: "x", jwtSecret: "x", snapshotImageId: "x" }
    return { sandboxId: session, ...needed }
  }
  if (path.includes("/fs/")) return { path: "planted", content: "x", text: "x" }
  if (path.includes("/exec")) return { cmd: "id" }
  if (path.endsWith("/templates")) return { name: "x" }
  if (path.endsWith("/tags")) return { target: "x", name: "x", tags: ["x"] }
  return {
    templateID: "base",
    name: "x",
    timeout: 80_000,
    duration: 80_000,
    sandboxID: sandbox,
    steps: [],
    fromImage: "x",
  }
}

function bodyOf(method: string, path: string, operation: Operation, things: Things): string | undefined {
  if (method === "GET" && /exec$|run$/.test(path)) return JSON.stringify({ cmd: "id" })
  if (method === "GET" || (method === "DELETE" && !path.endsWith("/tags"))) return undefined
  if (/^\/(valet|sandkasten|e2b|mcp)/.test(path)) return JSON.stringify(doorBody(path, things))
  const example = operation.requestBody?.content["application/json"]?.example
  if (example === undefined) return operation.requestBody ? "bytes" : undefined
  const known = path.endsWith("/commit") ? { session: things.session } : {}
  return JSON.stringify({ ...(example as object), ...known })
}
