/** What a scripted model does with one request. */
export type Step =
  | { readonly text: string; readonly pieces?: number; readonly reasoning?: string }
  | { readonly tool: string; readonly args: object; readonly text?: string }
  | { readonly status: number; readonly message?: string; readonly headers?: Record<string, string> }
  /** Never answers. */
  | { readonly hang: true }
  /** Begins, and is cut off. */
  | { readonly cut: string }

/** A request as every wire means it. */
export interface Asked {
  readonly wire: "chat" | "responses" | "messages"
  readonly model: string
  /** The key it was asked with, wherever the wire puts it. */
  readonly key: string
  /** What the person said last. */
  readonly prompt: string
  /** How many tools have answered since. */
  readonly results: number
  /** How much persons have said in this conversation. */
  readonly said: number
  /** A request without tools is no turn: a title is wanted. */
  readonly hasTools: boolean
}

/** A message of any wire. */
export type Said = { readonly role: "user"; readonly text: string } | { readonly role: "tool" | "other" }

const mark = /«steps (.*?)»/s

/** A prompt that says itself what the model shall do. */
export function prompted(...steps: readonly Step[]): string {
  return `Please do it. «steps ${JSON.stringify(steps)}»`
}

/** The step that is due: the prompt's own, or an echo. */
export function dueStep({ prompt, results, hasTools }: Asked): Step {
  if (!hasTools) return { text: "A scripted title" }
  const [, written] = mark.exec(prompt) ?? []
  if (written === undefined) return { text: `You said: ${prompt.trim().slice(0, 200)}`, pieces: 4 }
  const steps = JSON.parse(written) as Step[]
  return steps[Math.min(results, steps.length - 1)] ?? { text: "Nothing to do." }
}

/** The last thing a person said, and what came after it. */
export function lastOf(said: readonly Said[]): Pick<Asked, "prompt" | "results" | "said"> {
  const marked = said.findLastIndex((one) => one.role === "user" && mark.test(one.text))
  const last = said.findLastIndex((one) => one.role === "user")
  // Programs put reminders of their own beside what a person says.
  const at = marked >= 0 && said.slice(marked + 1).every((one) => !isPerson(one)) ? marked : last
  const one = said[at]
  const results = said.slice(at + 1).filter(({ role }) => role === "tool").length
  return { prompt: one?.role === "user" ? one.text : "", results, said: said.filter(isPerson).length }
}

function isPerson(one: Said): boolean {
  return one.role === "user" && one.text.trim() !== "" && !/^\s*<(system-reminder|environment)/.test(one.text)
}

/** A text in so many pieces. */
export function cutUp(text: string, pieces = 1): string[] {
  const letters = Array.from(text)
  const size = Math.max(1, Math.ceil(letters.length / pieces))
  return Array.from({ length: Math.ceil(letters.length / size) }, (_, n) =>
    letters.slice(n * size, (n + 1) * size).join(""),
  )
}
