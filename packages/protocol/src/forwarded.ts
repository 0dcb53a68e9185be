import { z } from "zod"
import { Environment } from "./user-plane/session.ts"

/**
 * Variables a runner is started with, for others: agents get `agent`, sandboxes get `shell`, and neither gets the other's.
 * Read once, from the file that WARREN_FORWARDED names (one without a name, when the CLI starts the runner), so that no argument list and
 * no environment shows them.
 */
export const Forwarded = z.object({ agent: Environment.default({}), shell: Environment.default({}) })
export type Forwarded = z.output<typeof Forwarded>
