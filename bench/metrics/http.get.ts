import { readFileSync } from "node:fs"
import { startControl } from "../control.ts"
import { HttpConnection, portMark, requestsPerSecond, requestText } from "../http-connection.ts"
import { defineMetric, type Context } from "../metric.ts"
import { Runner } from "../runner.ts"

const connections = 16

/** GET /v1/sessions/:id through the control plane and the runner, against a Hono handler that answers with as many bytes and does nothing else. */
export const metric = defineMetric({
  name: "http.get",
  unit: "requests/s",
  isHigherBetter: true,
  goal: { ratioMin: 0.5 },
  samples: { full: 40, quick: 6 },
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const control = await startControl(context, runner)
    const { id } = await runner.create({ network: { mode: "none" } })
    const bare = Number(readFileSync(await context.peer("bare-hono"), "utf8"))
    const path = `/v1/sessions/${id}`
    return {
      each: context.isQuick ? 100 : 500,
      ours: await openMany(context, control.port, requestText("GET", path, control.token)),
      bare: await openMany(context, bare, requestText("GET", path, control.token)),
    }
  },
  run: ({ ours, each }) => requestsPerSecond(ours, each),
  baseline: { name: "a bare Hono handler", run: ({ bare, each }) => requestsPerSecond(bare, each) },
})

async function openMany(context: Context, port: number, request: string): Promise<HttpConnection[]> {
  const text = request.replace(portMark, String(port))
  const opened = await Promise.all(Array.from({ length: connections }, () => HttpConnection.open(port, text)))
  return opened.map((connection) => context.scope.use(connection))
}
