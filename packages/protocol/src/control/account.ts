import { z } from "zod"
import { contract } from "../contract.ts"
import { TokenScope } from "../token-scope.ts"

export const UserName = z
  .string()
  .regex(/^[a-z_][a-z0-9_-]{0,31}$/, "a Linux account's name: lower-case letters, digits, - and _")
  .meta({ id: "UserName", description: "A user's name: that of their Linux account.", examples: ["alice"] })

export const Role = z.enum(["admin", "member"]).meta({ id: "Role", description: "An admin also manages users." })

export const User = z
  .object({
    id: z.string().meta({ examples: ["usr_0123456789abcdefghjk"] }),
    name: UserName,
    role: Role,
    isDisabled: z.boolean(),
    createdAt: z.iso.datetime(),
  })
  .meta({ id: "User", description: "Somebody who can sign in." })

/** Long enough not to be guessed, short enough not to be an attack on the hash. */
export const Password = z
  .string()
  .min(12)
  .max(256)
  .meta({ id: "Password", examples: ["correct horse battery"] })

export const Account = z
  .object({
    user: User,
    scopes: z.array(TokenScope),
    via: z.enum(["token", "sign-in", "token-file"]).meta({ description: "How it was said who is asking." }),
  })
  .meta({ id: "Account", description: "Who is asking, and what they may do." })

export const SignIn = z
  .object({
    id: z.string().meta({ examples: ["sin_0123456789abcdefghjk"] }),
    method: z.enum(["password", "link", "oidc"]),
    address: z.string().meta({ description: "Where it was made from." }),
    createdAt: z.iso.datetime(),
    usedAt: z.iso.datetime(),
    expiresAt: z.iso.datetime(),
    isThis: z.boolean().meta({ description: "The one that is asking." }),
  })
  .meta({ id: "SignIn", description: "A browser that is signed in." })

export const done = z.object({ ok: z.literal(true) })

export const accountCalls = contract({
  "login.methods": {
    since: 1,
    scope: "open",
    http: "GET /v1/login",
    doc: "The ways to sign in here.",
    in: z.object({}),
    out: z.object({
      password: z.boolean(),
      oidc: z
        .string()
        .optional()
        .meta({ description: "Where to send the browser.", examples: ["/v1/login/oidc"] }),
      account: Account.optional().meta({ description: "Who is signed in already." }),
    }),
  },
  "login.password": {
    since: 1,
    scope: "open",
    http: "POST /v1/login/password",
    doc: "Sign in with a password. The answer sets the cookie.",
    in: z.object({ name: z.string().min(1).max(64), password: z.string().min(1).max(256) }),
    out: z.object({ user: User }),
  },
  "login.out": {
    since: 1,
    scope: "account:read",
    http: "POST /v1/login/out",
    doc: "End this sign-in.",
    in: z.object({}),
    out: done,
  },
  "account.get": {
    since: 1,
    scope: "account:read",
    http: "GET /v1/account",
    doc: "Who is asking, and what they may do.",
    in: z.object({}),
    out: Account,
  },
  "account.password": {
    since: 1,
    scope: "account:write",
    http: "PUT /v1/account/password",
    doc: "Set the password. Every other sign-in ends.",
    in: z.object({
      current: z.string().max(256).optional().meta({ description: "The one there is, if there is one." }),
      password: Password,
    }),
    out: done,
  },
  "signin.list": {
    since: 1,
    scope: "account:read",
    http: "GET /v1/sign-ins",
    doc: "Where you are signed in.",
    in: z.object({}),
    out: z.object({ items: z.array(SignIn) }),
  },
  "signin.revoke": {
    since: 1,
    scope: "account:write",
    http: "DELETE /v1/sign-ins/{id}",
    doc: "End one of your sign-ins, at once.",
    in: z.object({ id: z.string().max(64) }),
    out: done,
  },
})
