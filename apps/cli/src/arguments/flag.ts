import { Fault } from "@warren/base/fault.ts"
import { environmentName, readDuration, readPort, readSize, readWhole } from "./values.ts"

/** What a completion offers for a value. */
export type Completes = "session" | "snapshot" | "image" | "workspace" | "secret" | "file"

/** One flag of a verb: how it is written, what it means, and what its text becomes. */
export interface Flag<T> {
  /** The word for its value in the help; a switch has none. */
  readonly value?: string
  readonly short?: string
  readonly doc: string
  readonly choices?: readonly string[]
  readonly completes?: Completes
  /** What the flag is when it was written with these values (a switch: one empty text each time), or not at all. */
  read(texts: readonly string[], name: string): T
}

export type Flags = Readonly<Record<string, Flag<unknown>>>
export type FlagValues<F extends Flags> = { readonly [K in keyof F]: F[K] extends Flag<infer T> ? T : never }

interface FlagOptions {
  readonly short?: string
  readonly completes?: Completes
}

function single<T>(
  value: string,
  doc: string,
  convert: (text: string, name: string) => T,
  options: FlagOptions = {},
): Flag<T | undefined> {
  return {
    value,
    doc,
    ...options,
    read(texts, name) {
      if (texts.length > 1) throw new Fault("invalid", `${name} was given twice`)
      return texts[0] === undefined ? undefined : convert(texts[0], name)
    },
  }
}

export const flag = {
  /** On when it is written. */
  on: (doc: string, options: FlagOptions = {}): Flag<boolean> => ({
    doc,
    ...options,
    read: (texts) => texts.length > 0,
  }),
  text: (value: string, doc: string, options?: FlagOptions) => single(value, doc, (text) => text, options),
  whole: (value: string, doc: string, range: { min: number; max: number }, options?: FlagOptions) =>
    single(value, doc, (text, name) => readWhole(text, name, range), options),
  number: (value: string, doc: string, range: { min: number; max: number }) =>
    single(value, doc, (text, name) => {
      const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
      if (number >= range.min && number <= range.max) return number
      throw new Fault("invalid", `${name} must be a number from ${range.min} to ${range.max}, not "${text}"`)
    }),
  size: (doc: string) => single("SIZE", `${doc} (\`512m\`, \`2g\`, bytes)`, readSize),
  duration: (doc: string) => single("TIME", `${doc} (\`90s\`, \`10m\`, \`2h\`, \`7d\`)`, readDuration),
  port: (doc: string) => single("PORT", doc, readPort),
  choice: <const C extends readonly string[]>(choices: C, doc: string): Flag<C[number] | undefined> => ({
    ...single(choices.join("|"), doc, (text, name) => {
      const chosen = choices.find((each) => each === text)
      if (chosen !== undefined) return chosen
      throw new Fault("invalid", `${name} must be one of ${choices.join(", ")}, not "${text}"`)
    }),
    choices,
  }),
  /** May be written many times. */
  list: (value: string, doc: string, options: FlagOptions = {}): Flag<readonly string[]> => ({
    value,
    doc,
    ...options,
    read: (texts) => texts,
  }),
  /** `NAME=VALUE`, once, as it was written. */
  pair: (doc: string) => single("NAME=VALUE", doc, (text, name) => pairOf(text, name).join("=")),
  /** `NAME=VALUE`, many times; the last one of a name counts. */
  pairs: (doc: string, options: FlagOptions = {}): Flag<Readonly<Record<string, string>>> => ({
    value: "NAME=VALUE",
    doc,
    ...options,
    read: (texts, name) => Object.fromEntries(texts.map((text) => pairOf(text, name))),
  }),
  /** Variables: `NAME=VALUE`, or `NAME` for the one that is set here. */
  environment: (doc: string): Flag<readonly Variable[]> => ({
    value: "NAME[=VALUE]",
    short: "e",
    doc: `${doc}; \`NAME\` alone takes the value it has here`,
    read: (texts, name) => texts.map((text) => variableOf(text, name)),
  }),
}

export interface Variable {
  readonly name: string
  /** Absent: the value it has in this process. */
  readonly value?: string
}

function pairOf(text: string, name: string): [string, string] {
  const at = text.indexOf("=")
  if (at < 1) throw new Fault("invalid", `${name} must be NAME=VALUE, not "${text}"`)
  return [text.slice(0, at), text.slice(at + 1)]
}

function variableOf(text: string, name: string): Variable {
  const [variable, value] = text.includes("=") ? pairOf(text, name) : [text]
  // The value is not repeated in the complaint: it may be a key.
  if (!environmentName.test(variable)) throw new Fault("invalid", `${name}: "${variable}" cannot be a variable's name`)
  return value === undefined ? { name: variable } : { name: variable, value }
}
