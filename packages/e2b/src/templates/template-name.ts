import { Fault } from "@warren/base/fault.ts"

/** A template is a snapshot: its name and tag are in the snapshot's name, which may have letters, digits and dashes. */
const mark = "e2b--"
const usualTag = "default"
const nameCharsMax = 63

export interface TemplateName {
  readonly name: string
  readonly tag: string
}

export function templateName(given: string): TemplateName {
  // What is before a slash says whose it is; here everything is whoever's asks.
  const [name = "", tag = usualTag, ...rest] = given.replace(/^[\w-]+\//, "").split(":")
  if (rest.length > 0 || !isPlain(name) || !isPlain(tag))
    throw new Fault("invalid", `${given}: a template's name has lower-case letters, digits, - and _`)
  return { name, tag }
}

/** Words with one sign between two of them, and none that reads like a sign of ours. */
const isPlain = (text: string): boolean => /^[a-z0-9]+(?:[_-][a-z0-9]+)*$/.test(text) && !text.includes("-5f-")

export function snapshotName({ name, tag }: TemplateName): string {
  const whole = `${mark}${name.replaceAll("_", "-5f-")}--${tag.replaceAll("_", "-5f-")}`
  if (whole.length > nameCharsMax) throw new Fault("invalid", "the name of the template is too long")
  return whole
}

/** Undefined for a snapshot that is no template. */
export function templateOf(snapshot: string | undefined): TemplateName | undefined {
  if (!snapshot?.startsWith(mark)) return undefined
  const [name = "", tag = ""] = snapshot.slice(mark.length).split("--")
  return { name: name.replaceAll("-5f-", "_"), tag: tag.replaceAll("-5f-", "_") }
}
