import net, { isIP } from "node:net"

/** A socket as Node has it inside. */
interface Handle {
  getsockname(name: { port?: number }): number
  close(): void
}
type CreateHandle = (address: string, port: number, addressType: number) => Handle | number

/** The place of a server. It is given to each process that is to be that server, one after the other. */
export interface HeldSocket extends Disposable {
  /** For `stdio` of a child. */
  readonly handle: object
}

/**
 * Keeps a server's place while the server is replaced: who connects meanwhile waits instead of being refused. Nobody listens here,
 * so nobody here takes a connection. Undefined where that cannot be: the server then takes its place itself, or says why not.
 */
export function holdSocket(address: string, port: number): HeldSocket | undefined {
  // Node listens where it binds, except in what its cluster module stands on. Without that nothing is kept, and all else works.
  const { _createServerHandle: create } = net as { _createServerHandle?: CreateHandle }
  const handle = isIP(address) === 0 ? undefined : create?.(address, port, isIP(address))
  if (typeof handle !== "object") return undefined
  const name: { port?: number } = {}
  handle.getsockname(name)
  // A place that is taken is told only to who listens; given on, a socket without one would listen anywhere.
  if (name.port === port) return { handle, [Symbol.dispose]: () => handle.close() }
  handle.close()
  return undefined
}
