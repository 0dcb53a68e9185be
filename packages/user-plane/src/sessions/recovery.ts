import type { State } from "./moves.ts"

/** What a new runner does with a session that the last one left. */
export type Recovery = "keep" | "forget" | "pauseAgain" | "run" | "sleep" | "lose" | "stopAgain" | "endSandbox"

/**
 * From the state that was written down, and whether its sandbox still runs. What nobody was told of (`starting`) is forgotten;
 * what was under way is finished in the direction that keeps the files.
 */
export function recover(state: State, isRunning: boolean): Recovery {
  const [running, gone] = table[state]
  return isRunning ? running : gone
}

const table: Readonly<Record<State, readonly [running: Recovery, gone: Recovery]>> = {
  starting: ["forget", "forget"],
  running: ["keep", "lose"],
  paused: ["pauseAgain", "lose"],
  hibernating: ["sleep", "sleep"],
  hibernated: ["endSandbox", "keep"],
  // A rollback that was not finished has not happened: the files are those from before.
  restoring: ["run", "lose"],
  stopping: ["stopAgain", "stopAgain"],
  stopped: ["endSandbox", "keep"],
  failed: ["endSandbox", "keep"],
}
