import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { Driver } from "@warren/drivers/driver.ts"
import type { Digest } from "../digest.ts"
import type { Progress } from "../events.ts"
import type { Images } from "../images.ts"
import { build } from "../recipe/build.ts"
import { makeDebian } from "./debian.ts"
import { findSupplies } from "./supplies.ts"
import { openWorkshop } from "./workshop.ts"

/** What each stands on, the lowest first. */
const below = {
  base: [],
  agent: ["base"],
  editor: ["base", "agent"],
  desktop: ["base", "agent"],
} as const
export type ShippedImage = keyof typeof below
export const shippedImages = Object.keys(below) as readonly ShippedImage[]

export interface ShippedOptions {
  readonly images: Images
  readonly driver: Driver
  /** The folder with one folder for each recipe. */
  readonly recipes: string
  readonly progress: Progress
  readonly signal: AbortSignal
}

/** Makes an image whose recipe comes with Warren, and first those it stands on, as far as they are not there. */
export async function buildShipped(name: ShippedImage, options: ShippedOptions): Promise<Digest> {
  const { images, driver, recipes, progress, signal } = options
  const supplies = await findSupplies()
  await using workshop = await openWorkshop(images.store, supplies, signal)
  for (const address of workshop.exceptions) {
    progress({ kind: "output", text: `this machine's own configuration leads to ${address}: allowed for this build\n` })
  }
  await images.sweep(driver)
  const debian = `debian:${supplies.release}`
  if (!has(images, debian)) {
    await makeDebian({ images, driver, workshop, folder: join(recipes, "debian"), name: debian, progress, signal })
  }
  const args = { DEBIAN: debian, ...(supplies.npmRegistry === undefined ? {} : { REGISTRY: supplies.npmRegistry }) }
  let made: Digest | undefined
  for (const one of [...below[name], name]) {
    const context = join(recipes, one)
    const recipe = await readFile(join(context, "Recipe"), "utf8")
    const { env, sandbox } = workshop
    made = await build({ images, driver, recipe, context, name: one, args, env, sandbox, progress, signal })
  }
  if (made === undefined) throw new Fault("not_found", `Warren has no recipe for ${JSON.stringify(name)}`)
  return made
}

function has(images: Images, name: string): boolean {
  try {
    images.inspect(name)
    return true
  } catch (failure) {
    if (failure instanceof Fault && failure.code === "not_found") return false
    throw failure
  }
}
