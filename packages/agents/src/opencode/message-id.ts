import { randomInt } from "node:crypto"

const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/**
 * An id as OpenCode makes them: whatever it makes later sorts after it. So a turn knows its own messages from those of an earlier one
 * by their ids alone.
 */
export function messageIdAt(now: number): string {
  const time = BigInt.asUintN(48, BigInt(now) * 0x1000n)
    .toString(16)
    .padStart(12, "0")
  const rest = Array.from({ length: 14 }, () => letters[randomInt(letters.length)])
  return `msg_${time}${rest.join("")}`
}
