import { Baseline } from "../baseline.ts"
import { startControl } from "../control.ts"
import { HttpConnection, portMark, requestText } from "../http-connection.ts"
import { defineMetric, elapsedMs } from "../metric.ts"
import { Runner } from "../runner.ts"
import { Sandboxes } from "../sandboxes.ts"

/** `true` in a session through HTTP, control plane and runner, with its result; against fork, exec and wait by a small C program on the host. */
export const metric = defineMetric({
  name: "http.exec-vs-fork",
  unit: "ms",
  goal: { ratioMax: 4 },
  samples: { full: 1_000, quick: 150 },
  perTurn: 10,
  async prepare(context) {
    const sandboxes = await Sandboxes.open(context)
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const { port, token } = await startControl(context, runner)
    const { id } = await runner.create({ network: { mode: "none" } })
    const request = requestText("POST", `/v1/sessions/${id}/exec`, token, JSON.stringify({ argv: ["true"] }))
    const connection = await HttpConnection.open(port, request.replace(portMark, String(port)))
    return { connection: context.scope.use(connection), baseline: await Baseline.start(context, sandboxes) }
  },
  run: ({ connection }) => elapsedMs(() => connection.ask()),
  baseline: { name: "fork+exec+wait in C", run: ({ baseline }) => baseline.take("true") },
})
