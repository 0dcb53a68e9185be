/** What a program in a session said, and how it ended. */
export interface Ran {
  /** Null: it was killed. */
  readonly code: number | null
  readonly stdout: Buffer
  readonly stderr: Buffer
  readonly isCut: boolean
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly timeoutMs: number
  readonly outputBytesMax?: number
  /** Its complaints, as they come. */
  readonly heard?: (complaint: string) => void
}

/** Where work for a session is done: in its sandbox, as its user, with what its programs have. */
export interface Workbench {
  readonly home: string
  /** Where its programs work: its workspace, or its home. */
  readonly root: string
  readonly hasWorkspace: boolean
  /** Aborted, it rejects once the program and what it started are gone. */
  run(argv: readonly string[], options: RunOptions, signal: AbortSignal): Promise<Ran>
  /** Parents are made. */
  write(path: string, content: Uint8Array, signal: AbortSignal): Promise<void>
  read(path: string, bytesMax: number, signal: AbortSignal): Promise<Buffer>
  /** Throws `not_found`. */
  sizeOf(path: string): Promise<number>
}
