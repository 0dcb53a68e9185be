import type { UserPlaneOptions } from "@warren/user-plane/user-plane.ts"

interface Config {
  readonly transcribeCommand: string
  readonly transcribeUrl: string
  readonly transcribeModel: string
}

/** A program of this machine before an endpoint; undefined when neither was told. */
export function transcriptionOf(config: Config, key: () => string | undefined): UserPlaneOptions["transcription"] {
  const [program, ...args] = config.transcribeCommand.split(/\s+/).filter((word) => word !== "")
  if (program !== undefined) return { command: [program, ...args] }
  return config.transcribeUrl === "" ? undefined : { url: config.transcribeUrl, model: config.transcribeModel, key }
}
