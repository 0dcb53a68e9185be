import { newId } from "@warren/base/id.ts"
import { defaultLimits, type Image, type SandboxSpec } from "./sandbox-spec.ts"

/** A spec with the usual choices. */
export function specOf(image: Image, changes: Partial<SandboxSpec> = {}): SandboxSpec {
  return {
    id: newId("sbx"),
    image,
    profile: "dev",
    limits: defaultLimits,
    hostname: "sandbox",
    network: { mode: "none" },
    isRootReadOnly: false,
    mounts: [],
    dns: [],
    ...changes,
  }
}
