import { bundle } from "./bundle.ts"
import { step } from "./progress.ts"
import { ensureSystemPackages } from "./system-packages.ts"

/** Everything between a checkout and something that runs. Does nothing when there is nothing to do. */
export async function prepare(purpose: "start" | "test"): Promise<void> {
  await ensureSystemPackages(purpose)
  await step("Building", bundle)
}
