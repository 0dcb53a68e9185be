import { bundleProgram } from "@warren/base/testing/program.ts"
import type { TempFolder } from "@warren/base/testing/temp-folder.ts"

/** The keeper's program for the tests of an ordinary user: of the sources as they are now. */
export function bundleKeeper(temp: TempFolder): Promise<string> {
  return bundleProgram(new URL("../keeper/program.ts", import.meta.url), temp)
}
