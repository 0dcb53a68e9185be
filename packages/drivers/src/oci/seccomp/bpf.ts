import { Fault } from "@warren/base/fault.ts"

/** Where a value lies in struct seccomp_data; arguments are 64-bit, the low half first on both our architectures. */
export const field = { number: 0, arch: 4, argLow: (index: number) => 16 + 8 * index } as const

export const verdict = {
  allow: 0x7fff_0000,
  errno: (number: number) => 0x0005_0000 | number,
} as const

export const errnos = { EPERM: 1, ENOSYS: 38, EAFNOSUPPORT: 97 } as const

/** Opcodes of classic BPF, those that we use. */
export const op = { load: 0x20, and: 0x54, jump: 0x05, ifEqual: 0x15, ifAtLeast: 0x35, answer: 0x06 } as const

interface Instruction {
  readonly code: number
  readonly yes: number
  readonly no: number
  readonly k: number
}

/** A place in the program, counted from its end: what is written later stands before it. */
export type Place = number

/** BPF_MAXINSNS: the kernel takes no longer program. */
const instructionsMax = 4096
const reachMax = 255
/** A copy of an answer is as short as a stepping stone to it, so it is written anew before it is out of reach. */
const answerSpare = 64

/**
 * A program written from its last instruction to its first. cBPF jumps only forward, so every target already has its place
 * when a jump to it is written; a branch that cannot reach its target gets a stepping stone.
 */
export class Program {
  readonly #reversed: Instruction[] = []
  readonly #answers = new Map<number, Place>()

  answer(value: number): Place {
    const place = this.#answers.get(value)
    if (place !== undefined && this.#reaches(place, answerSpare)) return place
    const copy = this.#write(op.answer, value)
    this.#answers.set(value, copy)
    return copy
  }

  load(offset: number, next: Place): Place {
    return this.#before(next, op.load, offset)
  }

  and(mask: number, next: Place): Place {
    return this.#before(next, op.and, mask)
  }

  ifEqual(value: number, yes: Place, no: Place): Place {
    return this.#branch(op.ifEqual, value, yes, no)
  }

  ifAtLeast(value: number, yes: Place, no: Place): Place {
    return this.#branch(op.ifAtLeast, value, yes, no)
  }

  /** struct sock_filter[], little-endian as on both our architectures. */
  toBytes(): Buffer {
    if (this.#reversed.length > instructionsMax) throw new Fault("internal", "the seccomp filter is too long")
    const bytes = Buffer.alloc(this.#reversed.length * 8)
    this.#reversed.toReversed().forEach(({ code, yes, no, k }, index) => {
      bytes.writeUInt16LE(code, index * 8)
      bytes.writeUInt8(yes, index * 8 + 2)
      bytes.writeUInt8(no, index * 8 + 3)
      bytes.writeUInt32LE(k >>> 0, index * 8 + 4)
    })
    return bytes
  }

  #before(next: Place, code: number, k: number): Place {
    if (next !== this.#reversed.length - 1) this.#write(op.jump, this.#distance(next))
    return this.#write(code, k)
  }

  #branch(code: number, k: number, yes: Place, no: Place): Place {
    // One spare step for `no`: a stone laid for `yes` afterwards moves it further away.
    const nearNo = this.#near(no, 1)
    const nearYes = this.#near(yes, 0)
    return this.#write(code, k, this.#distance(nearYes), this.#distance(nearNo))
  }

  #near(target: Place, spare: number): Place {
    return this.#reaches(target, spare) ? target : this.#write(op.jump, this.#distance(target))
  }

  #reaches(target: Place, spare: number): boolean {
    return this.#distance(target) + spare <= reachMax
  }

  #distance(target: Place): number {
    return this.#reversed.length - 1 - target
  }

  #write(code: number, k: number, yes = 0, no = 0): Place {
    this.#reversed.push({ code, yes, no, k })
    return this.#reversed.length - 1
  }
}
