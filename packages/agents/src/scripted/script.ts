import { z } from "zod"
import { TurnCause, Usage } from "@warren/protocol/hub/words.ts"

const pace = { delayMs: z.int().min(0).max(60_000).default(0) }

/** One thing a scripted agent does. */
export const Step = z.union([
  z.object({ text: z.string(), pieces: z.int().min(1).max(100_000).default(1), ...pace }),
  z.object({
    times: z.int().min(1).max(100_000).meta({ description: "Says so often what time it is, one line each." }),
    everyMs: z.int().min(1).max(60_000),
    atOnce: z.int().min(1).max(100).default(1),
  }),
  z.object({ reasoning: z.string() }),
  z.object({
    tool: z.string(),
    args: z.json().optional(),
    result: z.json().optional(),
    error: z.string().optional(),
    ...pace,
  }),
  z.object({ run: z.string().meta({ description: "A real command, as the tool `bash`." }) }),
  z.object({ question: z.string(), options: z.array(z.string()).optional() }),
  z.object({ title: z.string() }),
  z.object({ fail: z.string(), cause: TurnCause.default("verdict") }),
  z.object({ hang: z.literal(true) }),
  z.object({ die: z.literal(true).meta({ description: "Ends the process it runs in, at once." }) }),
])
export type Step = z.output<typeof Step>

export const Script = z.object({ steps: z.array(Step).max(10_000), usage: Usage.optional() })
export type Script = z.output<typeof Script>

const written = /\[\[script:(.*)\]\]/s

/** What a prompt asks for: its own script, or the demonstration. */
export function scriptOf(content: string): Script | { readonly wrong: string } {
  const [, text] = written.exec(content) ?? []
  if (text === undefined) return demonstration(content)
  try {
    const script = Script.safeParse(JSON.parse(text))
    return script.success ? script.data : { wrong: z.prettifyError(script.error) }
  } catch {
    return { wrong: "the script is not JSON" }
  }
}

/** For who has no key yet: an agent that is none, and says so. */
function demonstration(content: string): Script {
  const asked = content.trim().split("\n")[0]?.slice(0, 200) ?? ""
  return Script.parse({
    steps: [
      { title: asked.slice(0, 60) || "Hello" },
      {
        text: `You said: ${asked}\n\nI am a scripted agent: I cannot think, but I am in your sandbox. Let me look around.\n`,
        pieces: 12,
      },
      { run: 'echo "$(id -un) in $(pwd)"; ls' },
      { text: "\nThat is what is here. Start an agent with a model to have something done.\n", pieces: 6 },
    ],
  })
}
