import { z } from "zod"
import { contract } from "../contract.ts"
import { TerminalName } from "./terminals.ts"

const session = z
  .string()
  .min(1)
  .max(128)
  .meta({ description: "Id or name of the session.", examples: ["fix-login-bug"] })

export const ServiceName = z
  .enum(["vscode", "desktop", "browser"])
  .meta({ id: "ServiceName", description: "An editor, a screen, a browser without one.", examples: ["desktop"] })
export type ServiceName = z.output<typeof ServiceName>

export const Service = z
  .object({
    session: z.string().meta({ examples: ["ses_0123456789abcdefghjk"] }),
    name: ServiceName,
    state: z.enum(["stopped", "starting", "running", "waiting", "failed"]).meta({
      description: "`waiting`: it ended by itself and is started again soon. `failed`: that happened too often.",
    }),
    restarts: z.int(),
    startedAt: z.iso.datetime().optional(),
    detail: z.string().optional().meta({ description: "What it said last, where it failed." }),
    path: z
      .string()
      .optional()
      .meta({ description: "Where it is at the gateway.", examples: ["/s/ses_0123456789abcdefghjk/vnc/"] }),
    label: z
      .string()
      .optional()
      .meta({
        description: "The first part of its own host name, before the gateway's domain.",
        examples: ["vnc-0123456789abcdefghjk"],
      }),
  })
  .meta({ id: "Service", description: "A program in a session that is started on demand and kept running." })
export type Service = z.output<typeof Service>

export const serviceCalls = contract({
  "service.start": {
    since: 1,
    scope: "exec",
    http: "POST /v1/sessions/{session}/services",
    doc: "Start a service, and answer when it can be reached. One that runs is left as it is.",
    in: z.object({ session, name: ServiceName }),
    out: Service,
    timeoutMs: 90_000,
  },
  "service.install": {
    since: 1,
    scope: "exec",
    http: "POST /v1/sessions/{session}/services/{name}/install",
    doc: "Fetch the program of a service into a session whose image lacks it. That goes on in a terminal, which says how it goes and ends with 0 when it is there. The editor can be had so; the others say how they are had.",
    in: z.object({ session, name: ServiceName }),
    out: z.object({ terminal: TerminalName }),
  },
  "service.list": {
    since: 1,
    scope: "exec",
    http: "GET /v1/sessions/{session}/services",
    doc: "All services there are, and how each is in this session. One that sleeps sleeps on.",
    in: z.object({ session }),
    out: z.object({ services: z.array(Service) }),
  },
  "service.stop": {
    since: 1,
    scope: "exec",
    http: "DELETE /v1/sessions/{session}/services/{name}",
    doc: "Stop a service.",
    in: z.object({ session, name: ServiceName }),
    out: z.object({ wasRunning: z.boolean() }),
  },
})

const url = z
  .string()
  .max(8192)
  .regex(/^(?:https?:\/\/|data:|about:blank$)/, "http, https or data")
  .meta({ description: "As it is reached from inside the session.", examples: ["http://localhost:3000/"] })
const side = z.coerce.number().int().min(16).max(4096)

/** How a page is looked at. */
const looking = {
  session,
  url,
  width: side.default(1280),
  height: side.default(800),
  waitMs: z.coerce
    .number()
    .int()
    .min(0)
    .max(30_000)
    .default(0)
    .meta({ description: "After it has loaded, for what its scripts do." }),
}

export const browserCalls = contract({
  "browser.screenshot": {
    since: 1,
    scope: "exec",
    http: "GET /v1/sessions/{session}/browser/screenshot",
    body: "bytes",
    doc: "What a browser inside the session shows of a page, as an image.",
    in: z.object({
      ...looking,
      format: z.enum(["png", "jpeg"]).default("png"),
      isWhole: z
        .stringbool()
        .or(z.boolean())
        .default(false)
        .meta({ description: "The whole page, not what fits the window." }),
    }),
    up: z.never(),
    down: z.never(),
  },
  "browser.read": {
    since: 1,
    scope: "exec",
    http: "GET /v1/sessions/{session}/browser/page",
    doc: "What a page says, after a browser inside the session has run its scripts.",
    in: z.object({ ...looking, charsMax: z.coerce.number().int().min(1).max(200_000).default(50_000) }),
    out: z.object({
      url: z.string().meta({ description: "Where it ended up." }),
      status: z.int().optional(),
      title: z.string(),
      text: z.string(),
      isCut: z.boolean(),
    }),
    timeoutMs: 90_000,
  },
})
