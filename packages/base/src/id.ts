import { randomBytes } from "node:crypto"

declare const brand: unique symbol

/** A prefixed id such as `ses_4k2m…`; the prefix is part of the type, so the wrong kind does not compile. */
export type Id<Prefix extends string> = `${Prefix}_${string}` & { readonly [brand]: Prefix }

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
const bodyLength = 20
const body = new RegExp(`^[${alphabet}]{${bodyLength}}$`)

/** 100 random bits: no two alike, not guessable, safe in paths, host names and URLs. */
export function newId<Prefix extends string>(prefix: Prefix): Id<Prefix> {
  let text = ""
  for (const byte of randomBytes(bodyLength)) text += alphabet[byte & 31]
  return `${prefix}_${text}` as Id<Prefix>
}

export function isId<Prefix extends string>(prefix: Prefix, value: unknown): value is Id<Prefix> {
  return typeof value === "string" && value.startsWith(`${prefix}_`) && body.test(value.slice(prefix.length + 1))
}
