import { coldStart } from "../cold-start.ts"

/**
 * A new sandbox up to the end of its first `true`, against the least the kernel needs for it: a C program that makes the same
 * overlays, groups, namespaces, mounts and masks by bare system calls, loads the filter, and executes a PID 1 that runs `true`
 * and says so on a pipe. Nothing is checked, recorded or mapped onto the layers.
 */
export const metric = coldStart({
  name: "sandbox.cold-vs-floor",
  goal: { ratioMax: 2.5 },
  against: "floor",
  called: "bare system calls in C",
})
