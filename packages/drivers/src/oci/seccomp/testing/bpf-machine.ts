import { field, op } from "../bpf.ts"

/** What the kernel hands to a filter; arguments are 64-bit. */
export interface Call {
  readonly arch: number
  readonly number: number
  readonly args: readonly bigint[]
}

/** Runs a filter as the kernel does and refuses what the kernel's verifier refuses. */
export function runFilter(filter: Buffer, call: Call): number {
  const data = Buffer.alloc(64)
  data.writeUInt32LE(call.number >>> 0, field.number)
  data.writeUInt32LE(call.arch >>> 0, field.arch)
  call.args.forEach((arg, index) => data.writeBigUInt64LE(BigInt.asUintN(64, arg), field.argLow(index)))

  let accumulator = 0
  for (let at = 0; at < filter.length / 8; at++) {
    const [code, yes, no] = [filter.readUInt16LE(at * 8), filter.readUInt8(at * 8 + 2), filter.readUInt8(at * 8 + 3)]
    const k = filter.readUInt32LE(at * 8 + 4)
    if (code === op.load) accumulator = data.readUInt32LE(k)
    else if (code === op.and) accumulator = (accumulator & k) >>> 0
    else if (code === op.jump) at += k
    else if (code === op.ifEqual) at += accumulator === k ? yes : no
    else if (code === op.ifAtLeast) at += accumulator >= k ? yes : no
    else if (code === op.answer) return k
    else throw new Error(`unknown opcode ${code} at ${at}`)
  }
  throw new Error("ran past the end")
}
