import { Fault } from "@warren/base/fault.ts"
import { load } from "@warren/base/settings.ts"
import { settings } from "../settings.ts"
import type { ControlAddress } from "./connection.ts"

type Environment = Readonly<Record<string, string | undefined>>

/** How the control plane on this machine is reached, and how it is known. */
export function controlAddress(env: Environment, port: number): ControlAddress {
  const { tlsCertificate, tlsCa, publicUrl } = load(settings, env)
  const name = publicUrl === "" ? "localhost" : new URL(publicUrl).hostname
  return { port, certificate: tlsCertificate, authority: tlsCa, name }
}

/** Where people find it. */
export function urlOf(env: Environment, port: number): string {
  const { tlsCertificate, tlsCa, publicUrl } = load(settings, env)
  if (publicUrl !== "") return new URL(publicUrl).origin
  return `${tlsCertificate === "" && tlsCa === "" ? "http" : "https"}://localhost:${port}`
}

/** Where a person says that a Warren is. */
export function urlIn(text: string): URL {
  const url = URL.parse(text)
  if (url && /^https?:$/.test(url.protocol)) return url
  throw new Fault("invalid", `"${text}" is not the address of a Warren`, { hint: "http://… or https://…" })
}
