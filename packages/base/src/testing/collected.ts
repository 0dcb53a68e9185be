import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { eventually } from "./eventually.ts"

/** Resolves once nobody holds it any more. */
export async function collected(object: WeakRef<object>): Promise<void> {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as () => void
  await eventually(() => {
    collect()
    return object.deref() === undefined
  })
}
