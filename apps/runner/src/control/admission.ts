import { Fault } from "@warren/base/fault.ts"
import type { Caller } from "@warren/protocol/contract.ts"
import type { Admission, RpcAsked } from "@warren/protocol/rpc/server.ts"
import { sessionOf, type Statement, type StatementVerifier } from "@warren/protocol/statement.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"
import type { AccessLog } from "./access-log.ts"

/** Somebody the control plane asks for. */
export interface Admitted extends Caller {
  readonly limits: Statement["limits"]
}

/** Lets in what the control plane has signed a statement for, and writes down what it asked. */
export function admission(verifier: StatementVerifier, access: AccessLog): (asked: RpcAsked) => Admission {
  return (asked) => {
    const { call, in: input } = asked
    const statement = checked(verifier, asked, (reason) => {
      access.refuse({ user: "", ...about(call, input), result: "forbidden", reason })
    })
    const { user, token, id } = statement
    const trace = traceOf(asked.trace)
    const entry = {
      ...{ user, ...about(call, input), statement: id },
      ...(token === undefined ? {} : { token }),
      ...(trace === undefined ? {} : { trace }),
    }
    if (asked.isOpen) access.add({ ...entry, result: "opened" })
    const caller: Admitted = { name: user, limits: statement.limits }
    return { caller, ended: (result) => access.note({ ...entry, result }) }
  }
}

function checked(
  verifier: StatementVerifier,
  { call, in: input, statement }: RpcAsked,
  onRefusal: (reason: string) => void,
): Statement {
  const scope = Object.hasOwn(userPlane, call) ? userPlane[call as keyof typeof userPlane].scope : undefined
  try {
    return verifier.check({ call, in: input, scope, statement })
  } catch (thrown) {
    onRefusal(Fault.from(thrown).message)
    throw thrown
  }
}

/** The trace's own id, without which part of it this is. */
function traceOf(traceparent: string | undefined): string | undefined {
  return /^[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-[\da-f]{2}$/.exec(traceparent ?? "")?.[1]
}

const charsMax = 128

function about(call: string, input: unknown): { call: string; session?: string } {
  const session = sessionOf(call, input)?.slice(0, charsMax)
  return { call: call.slice(0, charsMax), ...(session === undefined ? {} : { session }) }
}
