import { resolve } from "node:path"
import { createLog } from "@warren/base/log.ts"
import { e2bDoor } from "@warren/e2b/door.ts"
import { app } from "../../../apps/control/src/app.ts"
import { E2bMount } from "../../../apps/control/src/doors/e2b/mount.ts"
import { Metrics } from "../../../apps/control/src/observe/metrics.ts"
import { BuiltFiles } from "../../../apps/control/src/page/files.ts"
import { TestControl } from "../../../apps/control/src/testing/test-control.ts"

const port = 7777

/**
 * Every route at the public door, `GET /v1/sessions/{id}`, asked of the router itself with everything on that can be: one that is
 * added tomorrow is in it. What looks at every request is in it too, as `ALL /*`.
 */
export async function publicRoutes(): Promise<string[]> {
  const publicUrl = new URL(`http://localhost:${port}`)
  const oidc = { issuer: "https://issuer.example", client: "warren", secret: "", nameClaim: "name" }
  await using test = await TestControl.open({ oidc })
  const log = createLog(() => undefined)
  const { control, clock } = test
  using e2b = new E2bMount({ control, domain: "e2b.example", clock, log })
  const { routes } = app({
    ...{ control, e2b, metrics: new Metrics(), traces: undefined, publicUrl, port, clock, log, acmeFolder: "/acme" },
    page: await BuiltFiles.open(resolve("dist/web")),
    gatewayDomain: "warren.localhost",
    isStopping: () => false,
  })
  const named = routes.map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`)
  return [...new Set(named)].toSorted()
}

/** What is asked of the program that clients of E2B believe to be in every sandbox. */
export function envdPaths(): readonly string[] {
  const nobody = async (): Promise<never> => {
    throw new Error("nobody asks")
  }
  const parts = {
    secret: Buffer.alloc(32),
    domain: "",
    clock: { now: () => 0 } as never,
    log: createLog(() => undefined),
  }
  using door = e2bDoor({ ...parts, asking: nobody, within: nobody })
  return door.traffic.paths
}
