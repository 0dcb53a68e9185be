/** What services may cost and how long they may take. */
export const serviceLimits = {
  /** Ends in a row after which one is left alone. */
  endsMax: 5,
  /** One that has run so long has started well: what went wrong before does not count any more. */
  settledMs: 60_000,
  baseMs: 200,
  capMs: 30_000,
  /** From its start until it can be reached. */
  readyMs: 60_000,
  lookMs: 50,
  /** For one that is told to stop. */
  graceMs: 2_000,
  /** Of what it says, to be shown when it failed. */
  complaintChars: 2_048,
} as const

export const browserLimits = {
  /** Browsers of one user at once; the one that was not used for longest makes room. */
  browsersMax: 4,
  /** Pages of one browser at once; more wait. */
  pagesMax: 4,
  waitingMax: 32,
  /** For a page to load. */
  loadMs: 30_000,
  /** For an answer of the browser itself. */
  answerMs: 30_000,
  /** Of one thing it says: a large picture. */
  messageBytesMax: 64 * 1024 * 1024,
  /** A page longer than this is shown to here. */
  heightMax: 16_384,
} as const
