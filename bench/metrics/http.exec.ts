import { startControl } from "../control.ts"
import { HttpConnection, portMark, requestText } from "../http-connection.ts"
import { defineMetric, elapsedMs } from "../metric.ts"
import { Runner } from "../runner.ts"
import { execTrue, Sandboxes } from "../sandboxes.ts"

/** `true` in a session through HTTP, control plane and runner, with its result; against the same over init's socket. */
export const metric = defineMetric({
  name: "http.exec",
  unit: "ms",
  goal: { ratioMax: 3 },
  samples: { full: 1_000, quick: 150 },
  perTurn: 10,
  async prepare(context) {
    const sandboxes = await Sandboxes.open(context)
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const { port, token } = await startControl(context, runner)
    const { id } = await runner.create({ network: { mode: "none" } })
    const request = requestText("POST", `/v1/sessions/${id}/exec`, token, JSON.stringify({ argv: ["true"] }))
    const connection = await HttpConnection.open(port, request.replace(portMark, String(port)))
    return { connection: context.scope.use(connection), sandbox: await sandboxes.create() }
  },
  run: ({ connection }) => elapsedMs(() => connection.ask()),
  baseline: { name: "over init's socket", run: ({ sandbox }) => elapsedMs(() => execTrue(sandbox)) },
})
