import { Fault } from "./fault.ts"

/** One setting: its variable, what it is when unset, and what it is for. The docs are made from the same entry. */
export interface Setting<T> {
  readonly variable: string
  readonly fallback: T | undefined
  readonly doc: string
  read(text: string): T
}

export type Settings = Readonly<Record<string, Setting<unknown>>>
export type Values<S extends Settings> = { readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never }

export function text(variable: string, fallback: string | undefined, doc: string): Setting<string> {
  return { variable, fallback, doc, read: (value) => value }
}

export function count(
  variable: string,
  fallback: number,
  doc: string,
  range: { min: number; max: number },
): Setting<number> {
  return {
    variable,
    fallback,
    doc,
    read(value) {
      const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
      if (!(number >= range.min && number <= range.max)) {
        throw new Fault(
          "invalid",
          `${variable} must be a whole number from ${range.min} to ${range.max}, not "${value}"`,
        )
      }
      return number
    },
  }
}

export function oneOf<const T extends string>(
  variable: string,
  fallback: T,
  choices: readonly T[],
  doc: string,
): Setting<T> {
  return {
    variable,
    fallback,
    doc,
    read(value) {
      const found = choices.find((one) => one === value)
      if (found === undefined) throw new Fault("invalid", `${variable} is "${value}", not one of ${choices.join(", ")}`)
      return found
    },
  }
}

/** Reads every setting once. Only `main.ts` calls this: below it, code receives values. */
export function load<S extends Settings>(
  settings: S,
  environment: Readonly<Record<string, string | undefined>>,
): Values<S> {
  const values = Object.entries(settings).map(([key, setting]) => {
    const given = environment[setting.variable]
    if (given !== undefined && given !== "") return [key, setting.read(given)]
    if (setting.fallback === undefined)
      throw new Fault("invalid", `${setting.variable} is not set`, { hint: setting.doc })
    return [key, setting.fallback]
  })
  return Object.fromEntries(values) as Values<S>
}
