import { readFile } from "node:fs/promises"

type Environment = Readonly<Record<string, string | undefined>>

/** The files with what an agent is to be and to heed: its persona first. */
export function guidanceFiles(env: Environment): string[] {
  const persona = env["WARREN_PERSONA_FILE"]
  const rest = (env["WARREN_INSTRUCTION_FILES"] ?? "").split(":").filter((path) => path !== "")
  return [...(persona ? [persona] : []), ...rest]
}

/** The same as one text, for agents that are told and do not read; empty when there is nothing. */
export async function guidanceOf(env: Environment): Promise<string> {
  const texts = await Promise.all(guidanceFiles(env).map((path) => readFile(path, "utf8")))
  return texts.map((text) => text.trim()).join("\n\n")
}
