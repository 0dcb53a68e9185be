import { coldStart } from "../cold-start.ts"

/**
 * A new sandbox up to the end of its first `true`, against bubblewrap doing the same: the same overlays, binds, masks and
 * namespaces, our compiled filter, groups with the same limits made by hand. Its PID 1 runs `true`; the clock stops when bwrap
 * has ended. It maps one id where we map 65,536, sets no rlimits, and nothing in it can be asked for a second command.
 */
export const metric = coldStart({
  name: "sandbox.cold-vs-bwrap",
  goal: { ratioMax: 1.3 },
  against: "bwrap",
  called: "bwrap, same isolation",
  program: "/usr/bin/bwrap",
})
