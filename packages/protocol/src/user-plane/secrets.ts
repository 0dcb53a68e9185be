import { z } from "zod"
import { contract } from "../contract.ts"
import { page, pageInput } from "./page.ts"

const valueCharsMax = 64 * 1024

export const SecretName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/)
  .meta({ id: "SecretName", description: "The name of a secret.", examples: ["GITHUB_TOKEN"] })

export const Secret = z
  .object({
    name: SecretName,
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    usedAt: z.iso.datetime().optional().meta({ description: "When it was last given to something." }),
  })
  .meta({ id: "Secret", description: "That there is a secret. Its value is never told." })

export const secretCalls = contract({
  "secrets.set": {
    since: 1,
    scope: "secrets:write",
    http: "PUT /v1/secrets/{name}",
    doc: "Keep a secret, or replace it. It cannot be read back.",
    in: z.object({
      name: SecretName,
      value: z
        .string()
        .min(1)
        .max(valueCharsMax)
        .refine((value) => !value.includes("\0"), "a secret cannot contain NUL"),
    }),
    out: Secret,
  },
  "secrets.list": {
    since: 1,
    scope: "secrets:read",
    http: "GET /v1/secrets",
    doc: "List the names of secrets.",
    in: z.object(pageInput),
    out: page(Secret),
  },
  "secrets.delete": {
    since: 1,
    scope: "secrets:write",
    http: "DELETE /v1/secrets/{name}",
    doc: "Forget a secret.",
    in: z.object({ name: SecretName }),
    out: z.object({ isDeleted: z.boolean() }),
  },
})
