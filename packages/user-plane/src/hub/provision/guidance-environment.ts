import type { Provisioned } from "@warren/protocol/user-plane/provision.ts"

/** Where whoever drives an agent finds what it is to be told; `guidanceOf` of the agents reads it. */
export function guidanceEnvironment({ persona, instructions }: Provisioned): Record<string, string> {
  return {
    ...(persona === undefined ? {} : { WARREN_PERSONA_FILE: persona }),
    ...(instructions.length === 0 ? {} : { WARREN_INSTRUCTION_FILES: instructions.join(":") }),
  }
}
