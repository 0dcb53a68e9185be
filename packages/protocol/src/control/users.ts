import { z } from "zod"
import { contract } from "../contract.ts"
import { page, pageInput } from "../user-plane/page.ts"
import { done, Password, Role, User, UserName } from "./account.ts"

export const Invite = z
  .object({
    id: z.string().meta({ examples: ["inv_0123456789abcdefghjk"] }),
    role: Role,
    name: UserName.optional().meta({ description: "The only name it can be used with." }),
    createdAt: z.iso.datetime(),
    expiresAt: z.iso.datetime(),
  })
  .meta({ id: "Invite", description: "Lets one person become a user, once." })

export const Quota = z
  .object({
    sessionsMax: z.int().min(0).max(100_000).meta({ description: "Sessions that are not over." }),
    requestsPerMinute: z.int().min(1).max(1_000_000).meta({ description: "Of all that is asked in this user's name." }),
  })
  .meta({ id: "Quota", description: "How much one user may use." })

export const Route = z
  .object({
    socket: z
      .string()
      .min(1)
      .max(107)
      .regex(/^\/[\w./@-]+$/)
      .meta({ examples: ["/run/warren/alice/control.sock"] }),
    uid: z.int().min(0).meta({ description: "Whose the socket has to be; otherwise it is not connected to." }),
  })
  .meta({ id: "Route", description: "Where a user's runner is found." })

const named = { name: UserName }

export const userCalls = contract({
  "user.list": {
    since: 1,
    scope: "admin",
    http: "GET /v1/users",
    doc: "Users, in the order of their names.",
    in: z.object(pageInput),
    out: page(User),
  },
  "user.create": {
    since: 1,
    scope: "admin",
    http: "POST /v1/users",
    makes: true,
    doc: "Make a user. They sign in with an invite made for their name, or with OIDC.",
    in: z.object({ ...named, role: Role.default("member") }),
    out: User,
  },
  "user.update": {
    since: 1,
    scope: "admin",
    http: "PATCH /v1/users/{name}",
    doc: "Change a role, or disable: every token and sign-in of a disabled user stops working at once.",
    in: z.object({ ...named, role: Role.optional(), isDisabled: z.boolean().optional() }),
    out: User,
  },
  "user.delete": {
    since: 1,
    scope: "admin",
    http: "DELETE /v1/users/{name}",
    doc: "Delete a user with their tokens, sign-ins and quota. What their runner keeps is not touched.",
    in: z.object(named),
    out: done,
  },
  "route.get": {
    since: 1,
    scope: "admin",
    http: "GET /v1/users/{name}/route",
    doc: "Where a user's runner is found.",
    in: z.object(named),
    out: Route,
  },
  "route.set": {
    since: 1,
    scope: "admin",
    http: "PUT /v1/users/{name}/route",
    doc: "Say where a user's runner is found.",
    in: z.object({ ...named, ...Route.shape }),
    out: Route,
  },
  "quota.get": {
    since: 1,
    scope: "admin",
    http: "GET /v1/users/{name}/quota",
    doc: "How much a user may use.",
    in: z.object(named),
    out: Quota,
  },
  "quota.set": {
    since: 1,
    scope: "admin",
    http: "PUT /v1/users/{name}/quota",
    doc: "Change how much a user may use.",
    in: z.object({ ...named, ...Quota.partial().shape }),
    out: Quota,
  },
  "invite.create": {
    since: 1,
    scope: "admin",
    http: "POST /v1/invites",
    makes: true,
    doc: "Make an invite. Its code is told once, here.",
    in: z.object({
      role: Role.default("member"),
      name: UserName.optional(),
      lifeMs: z
        .int()
        .min(60_000)
        .max(30 * 24 * 3600_000)
        .default(7 * 24 * 3600_000),
    }),
    out: z.object({ invite: Invite, code: z.string(), link: z.string() }),
  },
  "invite.list": {
    since: 1,
    scope: "admin",
    http: "GET /v1/invites",
    doc: "Invites that can still be used.",
    in: z.object({}),
    out: z.object({ items: z.array(Invite) }),
  },
  "invite.revoke": {
    since: 1,
    scope: "admin",
    http: "DELETE /v1/invites/{id}",
    doc: "Take an invite back.",
    in: z.object({ id: z.string().max(64) }),
    out: done,
  },
  "invite.redeem": {
    since: 1,
    scope: "open",
    http: "POST /v1/invites/redeem",
    doc: "Use an invite, or the link printed at the first start: makes you a user if you are none, and signs you in.",
    in: z.object({
      code: z.string().min(1).max(128),
      name: UserName.optional().meta({ description: "Who to be, unless the invite says." }),
      password: Password.optional().meta({ description: "To sign in with from now on." }),
    }),
    out: z.object({ user: User }),
  },
})
