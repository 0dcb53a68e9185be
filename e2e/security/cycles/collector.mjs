// Loaded into the runner by cycles.live.test.ts: its collector comes by all the time, so that what grows is what is kept.
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

const everyMs = 5_000

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc")
setInterval(() => collect(), everyMs).unref()
