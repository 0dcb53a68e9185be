import { join, resolve } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { silentLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { load } from "@warren/base/settings.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import { homeSetting, runnerRootOf, sandboxesOf } from "@warren/protocol/places.ts"
import type { ImageEvent } from "@warren/user-plane/images/events.ts"
import { Images } from "@warren/user-plane/images/images.ts"
import { keeperFor } from "@warren/user-plane/images/keeper/open.ts"
import { buildShipped, shippedImages, type ShippedImage } from "@warren/user-plane/images/shipped/shipped.ts"
import { prepare } from "./prepare.ts"

/** Makes one of the images whose recipes are in `images/`, with those it stands on: `npm run images -- desktop`. */
const { home } = load({ home: homeSetting }, process.env)
const [, , name = ""] = process.argv
const stop = new AbortController()
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort(new Error(signal)))

try {
  if (!isShipped(name)) throw new Fault("invalid", `say which: ${shippedImages.join(", ")}`)
  await prepare("start")
  await make(name)
} catch (failure) {
  const { message, hint } = Fault.from(failure)
  console.error(hint === undefined ? message : `${message}\n${hint}`)
  process.exitCode = 1
}

async function make(image: ShippedImage): Promise<void> {
  const started = Date.now()
  await using scope = new Scope()
  const root = sandboxesOf(runnerRootOf(home), "oci")
  const programs = { init: "dist/warren-init", launch: "dist/warren-launch", libraries: "dist/crun-lib" }
  const driver = scope.use(
    await openOciDriver({
      root,
      programs: {
        init: resolve(programs.init),
        launch: resolve(programs.launch),
        libraries: resolve(programs.libraries),
      },
      log: silentLog,
    }),
  )
  const keeper = keeperFor(driver, resolve("dist/keeper.js"))
  const imagesRoot = driver.imagesFolder ?? join(root, "images")
  const images = scope.use(await Images.open({ root: imagesRoot, log: silentLog, keeper }))
  const options = { images, driver, recipes: resolve("images"), progress: show, signal: stop.signal }
  const id = await buildShipped(image, options)
  const { bytes, layers } = images.inspect(id)
  const size = `${(bytes / 2 ** 20).toFixed(0)} MiB in ${layers.length} layers`
  console.log(`\n${image} is there: ${id}, ${size}, after ${((Date.now() - started) / 1000).toFixed(0)} s`)
}

function show(event: ImageEvent): void {
  if (event.kind === "output") process.stdout.write(event.text)
  if (event.kind !== "step") return
  const how = event.isCached ? "as before" : "…"
  console.log(`[${event.index}/${event.total}] ${event.text.replaceAll(/\s+/g, " ").slice(0, 100)} ${how}`)
}

function isShipped(text: string): text is ShippedImage {
  return (shippedImages as readonly string[]).includes(text)
}
