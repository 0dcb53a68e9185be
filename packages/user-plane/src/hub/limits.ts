/** What bounds a hub. */
export const sessionHubLimits = {
  /** The newest items of a session's feed that a reader can still ask for. */
  feedItems: 1_000,
  promptsWaiting: 100,
  /** How long prompts that are collected wait for more. */
  collectMs: 3_000,
  /** Between an abort and the end of whoever does not heed it. */
  abortMs: 5_000,
  /** A supervisor that runs has to come within this. */
  connectMs: 30_000,
  /** A supervisor that lives and cannot be reached in the middle of a turn, for this long. */
  unreachableMs: 60_000,
  /** Given to a supervisor that died before it had it; then it is not tried again. */
  triesMax: 3,
  /** After its process is gone: for what it has said to arrive. */
  lastWordsMs: 2_000,
  stopMs: 8_000,
  reconnect: { baseMs: 20, capMs: 1_000 },
  /** Heartbeats in a row without a turn that should be there. */
  missingMax: 2,
} as const
