import { z } from "zod"
import { contract } from "../contract.ts"
import { TokenScope } from "../token-scope.ts"
import { done } from "./account.ts"

/** A word or two to tell tokens apart by: not a place for notes. */
export const TokenLabel = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9._-]{0,38}[a-z0-9])?$/, "lower-case letters, digits, . - and _, at most 40")
  .meta({ id: "TokenLabel", examples: ["ci"] })

export const TokenLimits = z
  .object({
    namePrefix: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,47}$/)
      .optional()
      .meta({ description: "Only sessions whose names begin so can be seen or made.", examples: ["ci-"] }),
    sessionsMax: z
      .int()
      .min(0)
      .max(100_000)
      .optional()
      .meta({ description: "How many such sessions that are not over there may be when it makes one." }),
    requestsPerMinute: z.int().min(1).max(1_000_000).optional(),
  })
  .meta({ id: "TokenLimits", description: "What a token may do less than its owner." })

export const Token = z
  .object({
    id: z.string().meta({ examples: ["tok_0123456789abcdefghjk"] }),
    label: z.string(),
    scopes: z.array(TokenScope),
    limits: TokenLimits,
    createdAt: z.iso.datetime(),
    expiresAt: z.iso.datetime().optional(),
    usedAt: z.iso.datetime().optional().meta({ description: "When it was last used, to the minute." }),
  })
  .meta({ id: "Token", description: "That there is a token. The token itself was told once." })

export const tokenCalls = contract({
  "token.create": {
    since: 1,
    scope: "account:write",
    http: "POST /v1/tokens",
    makes: true,
    doc: "Make a token for a program. It is told once, here; only its hash is kept.",
    in: z.object({
      label: TokenLabel.default("token"),
      scopes: z
        .array(TokenScope)
        .min(1)
        .max(64)
        .optional()
        .meta({
          description:
            "Everything but `account:write`, `metrics:read` and `admin` unless said, and with a `namePrefix` only what is about sessions; never more than the asker has.",
          examples: [["sessions:read", "sessions:write", "exec"]],
        }),
      limits: TokenLimits.default({}),
      lifeMs: z
        .int()
        .min(60_000)
        .max(10 * 365 * 24 * 3600_000)
        .optional()
        .meta({ description: "For ever when absent." }),
      form: z.enum(["warren", "e2b"]).default("warren").meta({
        description: "`wrn_…`, or `e2b_…` for clients that insist on how a key looks.",
      }),
    }),
    out: z.object({ token: z.string(), about: Token }),
  },
  "token.list": {
    since: 1,
    scope: "account:read",
    http: "GET /v1/tokens",
    doc: "Your tokens.",
    in: z.object({}),
    out: z.object({ items: z.array(Token) }),
  },
  "token.revoke": {
    since: 1,
    scope: "account:write",
    http: "DELETE /v1/tokens/{id}",
    doc: "End a token, at once.",
    in: z.object({ id: z.string().max(64) }),
    out: done,
  },
})
