import { openOciDriver } from "/work/main/packages/drivers/src/oci/driver.ts"
import { Images } from "/work/main/packages/user-plane/src/images/images.ts"
import { silentLog } from "/work/main/packages/base/src/log.ts"
import { exec } from "/work/main/packages/drivers/src/init/exec.ts"
import { specOf } from "/work/main/packages/drivers/src/spec-of.ts"
import { defaultLimits } from "/work/main/packages/drivers/src/sandbox-spec.ts"
const never = new AbortController().signal
const root = "/tmp/h1/home/runner/sandboxes"
const d = "/work/main/dist"
const driver = await openOciDriver({ root, programs: { init: d + "/warren-init", launch: d + "/warren-launch", libraries: d + "/crun-lib" }, log: silentLog })
const images = await Images.open({ root: driver.imagesFolder!, log: silentLog })
const [, , name, command] = process.argv
const { env } = images.inspect(name!)
const spec = specOf(await images.use(name!, "test"), { limits: { ...defaultLimits, memoryBytes: 2 * 2 ** 30, pidsMax: 1024 } })
await driver.create(spec, never)
try {
  const s = await driver.start(spec.id, never)
  const r = await exec(s, { argv: ["bash", "-c", command!], env: Object.fromEntries(env.map((p) => [p.split("=")[0], p.slice(p.indexOf("=") + 1)])), cwd: "/workspace", timeoutMs: 60000 })
  console.log(r.code, r.signal, r.reason, "\n" + r.stdout, "\n" + r.stderr)
} finally {
  await driver.destroy(spec.id); images.release("test"); await images[Symbol.asyncDispose](); await driver[Symbol.asyncDispose]()
}
