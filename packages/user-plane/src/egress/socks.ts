import type { FaultCode } from "@warren/base/fault.ts"
import { Denied } from "./denied.ts"
import { canonicalHost, type Host, type Target } from "./host.ts"
import { readHead, type Head } from "./read-head.ts"
import type { Socket } from "node:net"

export const socksVersion = 5
const passwordVersion = 1
const methods = { open: 0, password: 2, none: 0xff }
const connectCommand = 1
const addressTypes = { ipv4: 1, domain: 3, ipv6: 4 }
/** The longest of its messages: a name and a password of 255 bytes each. */
const messageBytesMax = 513

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Goes through SOCKS5's greeting and says where the client wants to go. A name and password are taken, and mean nothing. */
export async function socksTarget(socket: Socket): Promise<Target> {
  const offered = await readHead(socket, messageBytesMax, readGreeting)
  const method = [methods.open, methods.password].find((one) => offered.includes(one)) ?? methods.none
  socket.write(Buffer.from([socksVersion, method]))
  if (method === methods.none) throw new Denied("bad-request", "SOCKS5: no way to log in that is known here")
  if (method === methods.password) {
    await readHead(socket, messageBytesMax, readPassword)
    socket.write(Buffer.from([passwordVersion, 0]))
  }
  const { command, host, port } = await readHead(socket, messageBytesMax, readRequest)
  if (command !== connectCommand) throw new Denied("bad-request", `SOCKS5: command ${command} is not supported`)
  if (port === 0) throw new Denied("bad-host", "SOCKS5: port 0")
  return { ...host(), port }
}

const replies: Readonly<Partial<Record<FaultCode, number>>> = { forbidden: 2, unavailable: 4, timeout: 6 }

/** The answer to a request: done, or why not. */
export function socksReply(code?: FaultCode): Buffer {
  return Buffer.from([
    socksVersion,
    code === undefined ? 0 : (replies[code] ?? 1),
    0,
    addressTypes.ipv4,
    0,
    0,
    0,
    0,
    0,
    0,
  ])
}

export function readGreeting(bytes: Buffer): Head<number[]> | undefined {
  const [version, count] = bytes
  if (version !== undefined && version !== socksVersion) throw new Denied("bad-request", "SOCKS5: another version")
  if (count === undefined || bytes.length < 2 + count) return undefined
  return { value: [...bytes.subarray(2, 2 + count)], used: 2 + count }
}

export function readPassword(bytes: Buffer): Head<true> | undefined {
  const [version, nameLength = 0] = bytes
  if (version !== undefined && version !== passwordVersion) throw new Denied("bad-request", "SOCKS5: another login")
  const passwordLength = bytes[2 + nameLength]
  if (passwordLength === undefined) return undefined
  const used = 3 + nameLength + passwordLength
  return bytes.length < used ? undefined : { value: true, used }
}

interface Request {
  readonly command: number
  readonly port: number
  /** Throws when it is none. */
  host(): Host
}

export function readRequest(bytes: Buffer): Head<Request> | undefined {
  const [version, command = 0, reserved, type = 0, length] = bytes
  if (version !== undefined && version !== socksVersion) throw new Denied("bad-request", "SOCKS5: another version")
  if (reserved !== undefined && reserved !== 0) throw new Denied("bad-request", "SOCKS5: not a request")
  if (length === undefined) return undefined
  const size = { [addressTypes.ipv4]: 4, [addressTypes.ipv6]: 16, [addressTypes.domain]: 1 + length }[type]
  if (size === undefined) throw new Denied("bad-request", `SOCKS5: address type ${type} is not known`)
  const used = 4 + size + 2
  if (bytes.length < used) return undefined
  const address = Buffer.from(bytes.subarray(4, 4 + size))
  const value = { command, port: bytes.readUInt16BE(used - 2), host: () => canonicalHost(textOf(type, address)) }
  return { value, used }
}

function textOf(type: number, address: Buffer): string {
  if (type === addressTypes.ipv4) return address.join(".")
  if (type === addressTypes.ipv6) return (address.toString("hex").match(/.{4}/g) ?? []).join(":")
  try {
    return utf8.decode(address.subarray(1))
  } catch (cause) {
    throw new Denied("bad-host", "SOCKS5: the name is not text", { cause })
  }
}
