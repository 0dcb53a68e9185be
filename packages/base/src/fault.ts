/** What a caller can act on. One row per code: HTTP status, whether trying again may help, the CLI's exit code. */
export const faultCodes = {
  invalid: { status: 400, isRetryable: false, exitCode: 2 },
  unauthenticated: { status: 401, isRetryable: false, exitCode: 10 },
  forbidden: { status: 403, isRetryable: false, exitCode: 11 },
  not_found: { status: 404, isRetryable: false, exitCode: 3 },
  conflict: { status: 409, isRetryable: false, exitCode: 4 },
  resync: { status: 410, isRetryable: true, exitCode: 5 },
  // Not 501: whoever watches for 5xx looks for what is broken, and nothing is; asked again, it is refused again.
  unsupported: { status: 422, isRetryable: false, exitCode: 7 },
  limit: { status: 429, isRetryable: true, exitCode: 6 },
  cancelled: { status: 499, isRetryable: false, exitCode: 130 },
  internal: { status: 500, isRetryable: false, exitCode: 1 },
  unavailable: { status: 503, isRetryable: true, exitCode: 8 },
  timeout: { status: 504, isRetryable: true, exitCode: 9 },
} as const

export type FaultCode = keyof typeof faultCodes

/** A fault as it crosses a process: no cause, no stack. */
export interface FaultData {
  readonly code: FaultCode
  readonly message: string
  /** What the reader can do next. */
  readonly hint?: string | undefined
  /** What it is about, as `noun:id`. */
  readonly subject?: string | undefined
}

interface FaultOptions {
  readonly hint?: string | undefined
  readonly subject?: string | undefined
  /** Of the request it answered, where it came over HTTP: to find it in a log. */
  readonly requestId?: string | undefined
  readonly cause?: unknown
}

const isFull = { code: "limit", message: "there is no room on the disk", hint: "make room on the disk" } as const
const fails = { code: "unavailable", hint: "look at the disk, and at what the kernel says of it" } as const

/** What any write can meet, wherever it is: no bug of whoever writes. */
const ofDisk: Readonly<Record<string, { code: FaultCode; message: string; hint: string }>> = {
  ENOSPC: isFull,
  EDQUOT: isFull,
  EROFS: { ...fails, message: "the disk cannot be written" },
  EIO: { ...fails, message: "the disk fails" },
}

/** The one error of this system. Callers act on `code`, people read `message`, `hint` says what to do next. */
export class Fault extends Error {
  override readonly name = "Fault"
  readonly code: FaultCode
  readonly hint: string | undefined
  readonly subject: string | undefined
  readonly requestId: string | undefined

  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.hint = options.hint
    this.subject = options.subject
    this.requestId = options.requestId
  }

  get isRetryable(): boolean {
    return faultCodes[this.code].isRetryable
  }

  /** What may leave this process. */
  toData(): FaultData {
    return {
      code: this.code,
      message: this.message,
      ...(this.hint === undefined ? {} : { hint: this.hint }),
      ...(this.subject === undefined ? {} : { subject: this.subject }),
    }
  }

  static fromData(data: FaultData): Fault {
    return new Fault(data.code, data.message, { hint: data.hint, subject: data.subject })
  }

  /**
   * Anything thrown, as a fault. A cancellation stays one, and a disk that is full says so; everything else is a bug: its words
   * may hold secrets, so the reader gets none of them, and whoever calls this logs the cause.
   */
  static from(thrown: unknown): Fault {
    if (thrown instanceof Fault) return thrown
    if (isSuppressed(thrown)) return Fault.from(thrown.suppressed)
    if (isCancellation(thrown)) return new Fault("cancelled", "the operation was cancelled", { cause: thrown })
    if (thrown instanceof Error && thrown.name === "TimeoutError") {
      return new Fault("timeout", "the operation took too long", { cause: thrown })
    }
    const known = ofDisk[errnoOf(thrown)]
    if (known) return new Fault(known.code, known.message, { cause: thrown, hint: known.hint })
    return new Fault("internal", "something went wrong inside Warren", { cause: thrown, hint: "see the log" })
  }
}

/** What `using` throws when giving back failed, too: what led to it comes first. */
function isSuppressed(thrown: unknown): thrown is Error & { readonly suppressed: unknown } {
  return thrown instanceof Error && thrown.name === "SuppressedError" && "suppressed" in thrown
}

export function isCancellation(thrown: unknown): boolean {
  if (thrown instanceof Fault) return thrown.code === "cancelled"
  return thrown instanceof Error && thrown.name === "AbortError"
}

/** The message of anything thrown, for logs. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** The operating system's name of an error (`ENOENT`), or an empty string. */
export function errnoOf(thrown: unknown): string {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : ""
}
