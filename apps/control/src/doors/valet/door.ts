import { randomBytes } from "node:crypto"
import { Fault, faultCodes, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { Hono, type Context as HonoContext } from "hono"
import type { ContentfulStatusCode } from "hono/utils/http-status"
import { Ask, type DoorParts } from "../ask.ts"
import { jsonBody, numberField, textField, type Fields } from "../body.ts"
import { workspaceOf } from "./workspace.ts"

const bodyBytesMax = 1024 * 1024
/** Of sessions whose clients say nothing. */
const idleS = 900
const idleSMax = 365 * 24 * 3600
/** Where the agent and the gateway of valet listen inside. */
const ports = { opencode: 4096, gateway: 9000 } as const
/** What valet's image runs. An image without it is a plain sandbox. */
const startCommand = "[ ! -e /start.sh ] || exec /bin/bash /start.sh"
const over: ReadonlySet<string> = new Set(["stopping", "stopped", "failed"])

type Handle = (ask: Ask, fields: Fields, c: HonoContext) => Promise<Response>

/** The six endpoints of valet's backend, with our sessions behind them. */
export function valetDoor(parts: DoorParts & { readonly publicUrl: URL }, log: Log): Hono {
  const door = new Hono()
  door.onError((thrown, c) => {
    const fault = Fault.from(thrown)
    if (fault.code === "internal") {
      log("error", "valet.bug", { path: c.req.path, message: messageOf(thrown), stack: thrown.stack })
    }
    const { status } = faultCodes[fault.code]
    return c.json({ error: fault.code, message: fault.message }, status as ContentfulStatusCode)
  })
  const on = (path: string, handle: Handle): void => {
    door.post(path, async (c) => {
      const ask = await Ask.of(parts, c)
      return handle(ask, await jsonBody(c.req.raw, bodyBytesMax), c)
    })
  }
  on("/create-session", async (ask, fields, c) => {
    return c.json(await create(ask, fields, parts.publicUrl, await imageOf(ask, fields)))
  })
  on("/restore-session", async (ask, fields, c) => {
    return c.json(await create(ask, fields, parts.publicUrl, { from: needed(fields, "snapshotImageId") }))
  })
  on("/terminate-session", async (ask, fields, c) => {
    await remove(ask, needed(fields, "sandboxId"))
    return c.json({ success: true })
  })
  on("/hibernate-session", hibernate)
  on("/session-status", async (ask, fields, c) => {
    const id = needed(fields, "sandboxId")
    const state = await stateOf(ask, id)
    return c.json({ sandbox_id: id, status: state === undefined || over.has(state) ? "terminated" : "running" })
  })
  on("/delete-workspace", async (ask, fields, c) => {
    const name = workspaceOf(needed(fields, "sessionId"))
    const isDeleted = await ask.call("workspace.delete", { name }).then(
      (answer) => answer.isDeleted,
      (thrown: unknown) => {
        if (thrown instanceof Fault && thrown.code === "not_found") return false
        throw thrown
      },
    )
    return c.json({ success: true, deleted: isDeleted })
  })
  door.all("*", (c) => {
    throw new Fault("not_found", `there is no ${c.req.method} ${c.req.path}`)
  })
  return door
}

async function create(ask: Ask, fields: Fields, publicUrl: URL, origin: { image?: string; from?: string }) {
  const sessionId = needed(fields, "sessionId")
  const [cpus, memoryMib] = [
    numberField(fields, "sandboxCpuCores", 0.01, 1024),
    numberField(fields, "sandboxMemoryMib", 8, 2 ** 26),
  ]
  const session = await ask.call("session.create", {
    ...origin,
    workspace: workspaceOf(sessionId),
    labels: { valet: sessionId.slice(0, 255) },
    env: environmentOf(fields),
    limits: {
      ...(cpus === undefined ? {} : { cpus }),
      ...(memoryMib === undefined ? {} : { memoryBytes: Math.floor(memoryMib) * 1024 * 1024 }),
    },
    idle: { afterMs: (numberField(fields, "idleTimeoutSeconds", 1, idleSMax) ?? idleS) * 1000, action: "hibernate" },
  })
  try {
    await ask.call("process.spawn", { session: session.id, cmd: startCommand })
  } catch (thrown) {
    // Nobody would ever hear of a session that was made but not told.
    await remove(ask, session.id)
    throw thrown
  }
  return { sandboxId: session.id, tunnelUrls: tunnelsOf(session.id, publicUrl) }
}

/** What the programs of valet look for; what the caller gives cannot take its place. */
function environmentOf(fields: Fields): Record<string, string> {
  const given = Object.entries((fields["envVars"] ?? {}) as Fields).map(([name, value]) => {
    if (typeof value === "object") throw new Fault("invalid", `envVars: ${name} must be a string`)
    return [name, String(value)]
  })
  const files = fields["personaFiles"]
  const own = {
    DO_WS_URL: needed(fields, "doWsUrl"),
    RUNNER_TOKEN: needed(fields, "runnerToken"),
    SESSION_ID: needed(fields, "sessionId"),
    JWT_SECRET: needed(fields, "jwtSecret"),
    OPENCODE_SERVER_PASSWORD: randomBytes(24).toString("base64url"),
    ...(files === undefined || files === null ? {} : { PERSONA_FILES_JSON: JSON.stringify(files) }),
  }
  const all = { ...(Object.fromEntries(given) as Record<string, string>), ...own }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ""))
}

/** `base` is what valet calls the usual one. */
async function imageOf(ask: Ask, fields: Fields): Promise<{ image?: string }> {
  const image = textField(fields, "imageType") ?? "base"
  if (image !== "base") return { image }
  const { items } = await ask.call("image.list", {})
  return items.some(({ names }) => names.includes(image)) ? { image } : {}
}

function tunnelsOf(id: string, publicUrl: URL): Record<string, string> {
  const at = (path: string): string => new URL(`/s/${id}/${path}`, publicUrl).href
  const inside = { opencode: at(`t/${ports.opencode}`), gateway: at(`t/${ports.gateway}`) }
  return { ...inside, vscode: at("vscode"), vnc: at("vnc"), ttyd: at("ttyd") }
}

async function hibernate(ask: Ask, fields: Fields, c: HonoContext): Promise<Response> {
  const id = needed(fields, "sandboxId")
  const state = await stateOf(ask, id)
  if (state === undefined || over.has(state)) {
    return c.json({ error: "sandbox_already_finished", message: "the sandbox has ended already" }, 409)
  }
  const snapshot = await ask.call("snapshot.create", { session: id }).catch((thrown: unknown) => Fault.from(thrown))
  if (snapshot instanceof Fault) return c.json({ error: "snapshot_failed", message: snapshot.message }, 503)
  await remove(ask, id)
  return c.json({ snapshotImageId: snapshot.id })
}

async function stateOf(ask: Ask, id: string): Promise<string | undefined> {
  try {
    return (await ask.call("session.get", { id })).state
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.code === "not_found") return undefined
    throw thrown
  }
}

/** What is gone already is fine. */
async function remove(ask: Ask, id: string): Promise<void> {
  await ask.call("session.delete", { id }).catch((thrown: unknown) => {
    if (!(thrown instanceof Fault) || thrown.code !== "not_found") throw thrown
  })
}

function needed(fields: Fields, name: string): string {
  const value = textField(fields, name)
  if (value) return value
  throw new Fault("invalid", `${name} is required`)
}
