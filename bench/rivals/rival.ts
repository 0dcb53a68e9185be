/** One way to have a sandbox, Warren's or another's. All of them have the same root and limits. */
export interface Rival {
  readonly name: string
  /** What exactly is timed, for whoever reads the figures. */
  readonly how: string
  /** From nothing over the end of `true` to nothing, in milliseconds. */
  cycle(): Promise<number>
  /** One more that sleeps. */
  start(): Promise<void>
  /** `true` to its end in the one that was started last, in milliseconds. */
  exec(): Promise<number>
  /** What all that sleep hold in bytes: their own pages, what the kernel counts for them, and whoever waits beside them. */
  memory(): Promise<number>
  /** All that sleep are gone. */
  stop(): Promise<void>
}

/** A rival that is not on this machine, and why. */
export interface Absent {
  readonly name: string
  readonly why: string
}
