import { silentLog } from "@warren/base/log.ts"
import { Images } from "../images.ts"

/** A process to be killed: pulls an image, and says a line for everything that happens. */
const [, , root = "", name = ""] = process.argv
await using images = await Images.open({ root, log: silentLog })
console.log("open")
await images.pull(name, { progress: (event) => console.log(JSON.stringify(event)) })
console.log("done")
