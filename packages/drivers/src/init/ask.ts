import { Fault } from "@warren/base/fault.ts"
import type { z } from "zod"
import type { Sandbox } from "../driver.ts"
import { Operation, type Request } from "./operation.ts"

/** An operation with one answer. */
export async function ask<Out extends z.ZodType>(
  sandbox: Pick<Sandbox, "connect">,
  request: Request,
  out: Out,
  signal?: AbortSignal,
): Promise<z.output<Out>> {
  await using operation = new Operation(await sandbox.connect(signal), request, signal)
  const answer = out.safeParse(await operation.event("ok"))
  if (!answer.success)
    throw new Fault("internal", `init's answer to ${request.op} has the wrong shape`, { cause: answer.error })
  return answer.data
}
