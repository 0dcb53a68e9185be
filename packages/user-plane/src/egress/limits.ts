/** What one sandbox may take of the proxy. Every wait and every buffer in here has its bound in this table. */
export interface EgressLimits {
  /** Connections from the sandbox at one time; one more is closed at once. */
  readonly connectionsMax: number
  /** Requests sent on one connection without waiting for answers; one that sends more is cut. */
  readonly pipelinedMax: number
  /** Of one HTTP head. */
  readonly headerBytesMax: number
  /** Of what is read to find a server name in a TLS greeting. */
  readonly helloBytesMax: number
  /** From the first byte to a complete head, greeting or handshake: what drips slower is cut. */
  readonly handshakeMs: number
  /** For a name to resolve. */
  readonly resolveMs: number
  /** For all addresses of a name together. */
  readonly connectMs: number
  /** For one address, so that a dead one leaves time for the next. */
  readonly connectOneMs: number
  /** Addresses tried of those a name has. */
  readonly addressesMax: number
  /** Between two requests on one connection. */
  readonly keepAliveMs: number
  /** Without a byte in either direction. */
  readonly idleMs: number
}

export const defaultEgressLimits: EgressLimits = {
  connectionsMax: 512,
  pipelinedMax: 4,
  headerBytesMax: 64 * 1024,
  helloBytesMax: 32 * 1024,
  handshakeMs: 15_000,
  resolveMs: 10_000,
  connectMs: 20_000,
  connectOneMs: 6_000,
  addressesMax: 16,
  keepAliveMs: 30_000,
  idleMs: 10 * 60_000,
}
