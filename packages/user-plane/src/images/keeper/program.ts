import { createInterface } from "node:readline"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { refuseDebuggers } from "@warren/base/debugger.ts"
import type { ImageView } from "../layer/merged.ts"
import type { Job, Look, Told } from "./jobs.ts"
import { ownKeeper } from "./keeper.ts"

refuseDebuggers()

/**
 * The keeper of an ordinary user's layers: one job, in a user namespace in which this process is root over the ids of sandboxes. Whoever
 * started it holds its input; when that ends early, they are gone, and so is the reason to go on.
 */
const job = JSON.parse(process.argv[2] ?? "") as Job
const say = (told: Told): void => void process.stdout.write(`${JSON.stringify(told)}\n`)

try {
  if (job.do === "view") await show(ownKeeper.view(job.layers))
  else say({ ok: await work(job) })
} catch (thrown) {
  say({ fault: toData(thrown) })
}
process.stdin.destroy()

async function work(asked: Exclude<Job, { do: "view" }>): Promise<unknown> {
  if (asked.do === "unpack") return await ownKeeper.unpack(process.stdin, asked)
  process.stdin.once("end", () => process.exit(1)).resume()
  if (asked.do === "repack") return await ownKeeper.repack(asked.upper, asked)
  return await ownKeeper.remove(asked.path)
}

async function show(image: ImageView): Promise<void> {
  await using view = image
  for await (const line of createInterface({ input: process.stdin })) {
    const look = JSON.parse(line) as Look
    const seen = look.see === "text" ? view.text(look.place, look.bytesMax) : view[look.see](look.place)
    say(await seen.then((ok): Told => ({ ok }), refused))
  }
}

function refused(thrown: unknown): Told {
  return { fault: toData(thrown) }
}

/** Whoever reads it is of the same program: the operating system's words may be told. */
function toData(thrown: unknown): ReturnType<Fault["toData"]> {
  if (thrown instanceof Fault) return thrown.toData()
  return new Fault("internal", `the files of a layer: ${messageOf(thrown)}`).toData()
}
