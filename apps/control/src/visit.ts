import { randomUUID } from "node:crypto"
import { Fault } from "@warren/base/fault.ts"
import type { Caller, Context } from "@warren/protocol/contract.ts"
import type { Statement } from "@warren/protocol/statement.ts"
import type { TokenScope } from "@warren/protocol/token-scope.ts"
import type { UserRow } from "./store/users.ts"

/** Somebody who has proven who they are, and what that proof lets them do. */
export interface Principal {
  readonly user: UserRow
  readonly via: "token" | "sign-in" | "token-file"
  /** Of the token or sign-in. */
  readonly viaId: string
  /** Of what they showed, to look again whether it still counts. */
  readonly hash: string
  readonly scopes: ReadonlySet<TokenScope>
  readonly limits: Statement["limits"]
  readonly requestsPerMinute: { readonly user: number; readonly token: number | undefined }
}

/** One request at the public door, from its first byte to its answer. */
export class Visit implements Caller {
  readonly address: string
  readonly requestId = newRequestId()
  /** Headers its answer gets, whatever the answer is. */
  readonly headers: [name: string, value: string][] = []
  principal: Principal | undefined
  /** The call it turned out to be. */
  call: string | undefined
  /** What it was done to, if that has an id. */
  subject = ""
  /** The W3C's `traceparent` that goes to whoever is asked for it. */
  trace: string | undefined
  isAudited = false

  constructor(address: string) {
    this.address = address
  }

  get name(): string {
    return this.principal?.user.name ?? ""
  }

  /** Who is asking; throws when nobody said. */
  get who(): Principal {
    if (this.principal) return this.principal
    throw new Fault("unauthenticated", "a valid token is missing", { hint: "send Authorization: Bearer <token>" })
  }
}

/** Node makes these many at a time, which costs a tenth of asking for random bytes. */
function newRequestId(): string {
  return `req_${randomUUID().replaceAll("-", "").slice(0, 20)}`
}

export function visitOf({ caller }: Context): Visit {
  if (caller instanceof Visit) return caller
  throw new Fault("internal", "a call came in past the door")
}
