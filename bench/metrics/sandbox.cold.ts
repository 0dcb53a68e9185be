import { coldStart } from "../cold-start.ts"

/**
 * A new sandbox up to the end of its first `true`, against plain `crun run` of `true` to its end: the same image as overlays of
 * the same layers, the same mounts, masks, capabilities, limits and table of system calls. crun makes the user namespace, sets the
 * limits and has libseccomp compile the filter, as it does for container engines, and takes its container away when `true` has
 * ended. Ours also waits for init's answer and reads back from the kernel that everything is in force.
 */
export const metric = coldStart({
  name: "sandbox.cold",
  goal: { ratioMax: 0.4 },
  against: "crun run",
  called: "crun run, same isolation",
})
