import { parallelCreates } from "../parallel-creates.ts"

export const metric = parallelCreates(32)
