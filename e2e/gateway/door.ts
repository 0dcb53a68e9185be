import { HttpDoor } from "@warren/user-plane/gateway/testing/http-door.ts"

export type { Ask } from "@warren/user-plane/gateway/testing/http-door.ts"

/** The public door. */
export class Door extends HttpDoor {
  readonly port: number

  constructor(port: number) {
    super({ port }, `localhost:${port}`)
    this.port = port
  }
}

/** A session's preview at a host name of its own. */
export function ownHost(session: string, target: string | number, port: number): string {
  return `${target}-${session.slice("ses_".length)}.warren.localhost:${port}`
}
