/** What the gateway gives and bears. Every wait, buffer and list in this folder has its bound in this table. */
export const gatewayLimits = {
  /** Of one request's head, and of one answer's from inside. */
  headBytesMax: 16 * 1024,
  /** From a connection's first byte to a complete head. */
  headMs: 15_000,
  connectionsMax: 2_048,
  /** Requests and sockets of one session at one time; one more is refused. Each is a process inside, of the 512 that are usual. */
  exchangesPerSessionMax: 256,
  /** For something inside to take a connection. */
  connectMs: 10_000,
  /** Without a byte in either direction. */
  idleMs: 30 * 60_000,
  /** How long a client that asks before it sends its body waits for a program inside that does not answer that. */
  continueMs: 1_000,
  /** Connections to one port that wait for the next request, and how long. */
  spareMax: 8,
  spareMs: 4_000,
  /** A cookie that is not used for this long is worth nothing; a used one is sent again after a while. */
  cookieIdleMs: 15 * 60_000,
  cookieAgainMs: 60_000,
  /** However much it is used. */
  cookieLifeMs: 12 * 3600_000,
  cookiesMax: 10_000,
  /** From a redirect to the preview's own host name, to the request there. */
  ticketMs: 60_000,
  ticketsMax: 1_000,
  /** Tokens that were seen in a URL, remembered until they expire. */
  burnedMax: 10_000,
  /** How often it is noted that somebody comes with a token, and of how many that is remembered. */
  noteAgainMs: 60_000,
  notedMax: 1_000,
  /** Of one message to a terminal or a desktop. */
  messageBytesMax: 1024 * 1024,
  tunnelsPerSessionMax: 64,
  /** Of a request to the gateway's own API. */
  apiBytesMax: 16 * 1024,
} as const
