import { Forwarded } from "@warren/protocol/forwarded.ts"
import { z } from "zod"

/** Everything a Warren is started with. It travels to a daemon through a pipe, because there are keys in it. */
export const Plan = z.object({
  home: z.string(),
  port: z.int(),
  isDaemon: z.boolean(),
  /** The folder with the built programs. */
  programs: z.string(),
  /** Settings of the runner, as variables. */
  settings: z.record(z.string(), z.string()),
  forwarded: Forwarded,
  account: z.object({ name: z.string(), uid: z.int(), gid: z.int(), home: z.string() }).optional(),
})
export type Plan = z.output<typeof Plan>
