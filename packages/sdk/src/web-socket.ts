import { Fault } from "@warren/base/fault.ts"

/** As much of a WebSocket as is used here. */
export interface Socket {
  binaryType: string
  readonly bufferedAmount: number
  send(data: string | Uint8Array): void
  close(): void
  /** Holds the other side back. A browser's own cannot. */
  pause?(): void
  resume?(): void
  addEventListener(type: string, listen: (event: never) => void): void
}

/** A browser's own. It proves who opens it with the cookie: a page can set no headers. */
export function openSocket(url: string, _headers: Readonly<Record<string, string>>): Socket {
  const { WebSocket } = globalThis as unknown as { WebSocket?: new (url: string) => Socket }
  if (!WebSocket) throw new Fault("unsupported", "there is no WebSocket here")
  return new WebSocket(url)
}
