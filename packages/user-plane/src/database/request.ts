import type { FaultData } from "@warren/base/fault.ts"
import type { SqlResult, SqlValue } from "@warren/protocol/user-plane/database.ts"
import type { z } from "zod"
import type { Purpose } from "./statement.ts"

export type Value = z.output<typeof SqlValue>
export type Result = z.output<typeof SqlResult>

/** What the runner asks its database process. */
export interface Request {
  readonly purpose: Purpose
  readonly sql: string
  readonly parameters: readonly (Value | boolean)[]
  readonly rowsMax: number
}

/** What it answers. `isSpent`: it is of no more use, and ends. */
export type Reply =
  | { readonly result: Result; readonly isSpent: boolean }
  | { readonly fault: FaultData; readonly isSpent: boolean }
