import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from "node:crypto"
import { Fault } from "@warren/base/fault.ts"

/** About a tenth of a second and 32 MiB for each guess. They are kept with each hash, so they can be raised. */
const cost = { N: 2 ** 15, r: 8, p: 1 } as const
const saltBytes = 16
const hashBytes = 32
const memoryBytesMax = 128 * 1024 * 1024
/** Hashes worked on at once, and those that wait: what they cost must not be a way to stop the control plane. */
const atOnce = 2
const waitingMax = 32

/** Hashes passwords and compares them. */
export class Passwords {
  readonly #waiting: (() => void)[] = []
  #working = 0

  async hash(password: string): Promise<string> {
    const salt = randomBytes(saltBytes)
    const hash = await this.#work(password, salt, cost)
    return written(salt, hash)
  }

  /** Without a verifier (nobody has that name) it takes as long, and is false. */
  async isRight(password: string, verifier: string | undefined): Promise<boolean> {
    const [kind, N, r, p, salt = "", hash = ""] = (verifier ?? nobody).split("$")
    if (kind !== "scrypt") throw new Fault("internal", "a password is kept in a way not known here")
    const expected = Buffer.from(hash, "base64url")
    const options = { N: Number(N), r: Number(r), p: Number(p) }
    const given = await this.#work(password, Buffer.from(salt, "base64url"), options)
    return given.length === expected.length && timingSafeEqual(given, expected) && verifier !== undefined
  }

  async #work(password: string, salt: Buffer, options: ScryptOptions): Promise<Buffer> {
    if (this.#working >= atOnce) await this.#turn()
    this.#working++
    try {
      return await scrypted(password.normalize("NFKC"), salt, options)
    } finally {
      this.#working--
      this.#waiting.shift()?.()
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= waitingMax) {
      throw new Fault("limit", "too many are signing in at once", { hint: "try again in a moment" })
    }
    return new Promise((resolve) => this.#waiting.push(resolve))
  }
}

function written(salt: Buffer, hash: Buffer): string {
  return ["scrypt", cost.N, cost.r, cost.p, salt.toString("base64url"), hash.toString("base64url")].join("$")
}

/** Of a password that nobody has: an unknown name takes as long as a wrong password. */
const nobody = written(Buffer.alloc(saltBytes), Buffer.alloc(hashBytes))

function scrypted(password: string, salt: Buffer, options: ScryptOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password, salt, hashBytes, { ...options, maxmem: memoryBytesMax }, (failure, hash) => {
      if (failure) reject(failure)
      else resolve(hash)
    })
  })
}
