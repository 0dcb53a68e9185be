import { Fault } from "@warren/base/fault.ts"
import { silentLog } from "@warren/base/log.ts"
import { Hono } from "hono"
import { expect, test } from "vitest"
import { z } from "zod"
import { contract, isStream, type Handlers } from "../contract.ts"
import { publicCalls } from "../control-plane.ts"
import { httpOf } from "./path.ts"
import { answerFaults, routes } from "./routes.ts"

/** Every entry takes any input, so that only the way it is reached decides which one answers. */
const reached = contract(
  Object.fromEntries(
    Object.entries(publicCalls).flatMap(([name, entry]) =>
      isStream(entry) || !("http" in entry)
        ? []
        : [[name, { since: 1, doc: "", http: entry.http, in: z.looseObject({}), out: z.unknown() }]],
    ),
  ),
)

test("each route of the public door leads to its own call, in whatever order they are written down", async () => {
  for (const table of [reached, Object.fromEntries(Object.entries(reached).toReversed())]) {
    let asked = ""
    const handler = (name: string) => () => {
      asked = name
      return Promise.reject(new Fault("conflict", ""))
    }
    const handlers = Object.fromEntries(Object.keys(table).map((name) => [name, handler(name)])) as Handlers<
      typeof table
    >
    const app = new Hono()
    answerFaults(app, silentLog)
    app.route("/", routes({ contract: table, handlers, log: silentLog, caller: () => ({ name: "" }) }))
    for (const [name, { http }] of Object.entries(table)) {
      const { method, path } = httpOf(http ?? "GET /")
      await app.request(path.replaceAll(/\{\w+\}/g, "x"), { method })
      expect(asked).toBe(name)
    }
  }
})
