import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { lookup } from "node:dns/promises"
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { silentLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { exec, type ExecResult } from "@warren/drivers/init/exec.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import { hostImage } from "@warren/drivers/oci/host-image.ts"
import { defaultLimits } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { expect, it } from "vitest"
import { proxyEnvironment } from "./proxy-environment.ts"
import { EgressProxy } from "./proxy.ts"

const never = new AbortController().signal
const dist = resolve(import.meta.dirname, "../../../../dist")

/** What installing would change, if it came through. */
function hostState(): unknown[] {
  const hash = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex")
  const paths = ["/usr/bin/hello", "/usr/share/doc/hello", "/home/anna", "/var/lib/dpkg/info/hello.list"]
  return [
    hash(readFileSync("/var/lib/dpkg/status")),
    paths.map((path) => existsSync(path)),
    /^anna:/m.test(readFileSync("/etc/passwd", "utf8")),
  ]
}

it("installs a package and makes a user in the machine's own image, and the machine stays as it was", async ({
  skip,
}) => {
  if (process.getuid?.() !== 0) return skip("owners of the image's files cannot be mapped without root")
  const [mirror] =
    /https?:\/\/[^/\s]+/.exec(execFileSync("apt-get", ["indextargets", "--format", "$(SITE)"]).toString()) ?? []
  if (mirror === undefined) return skip("apt has no mirror here")
  if (existsSync("/usr/bin/hello")) return skip("hello is installed here already")
  const { hostname, port } = new URL(mirror)
  const { address } = await lookup(hostname, 4).catch(() => ({ address: "" }))
  if (address === "") return skip(`the mirror ${hostname} cannot be found here`)
  await using scope = new Scope()
  const root = realpathSync(mkdtempSync(join(tmpdir(), "wa-")))
  scope.defer(() => rmSync(root, { recursive: true, force: true }))
  const folder = mkdtempSync(join(root, "egress-"))
  execFileSync("chmod", ["755", folder])
  scope.use(
    await EgressProxy.listen({
      path: join(folder, "proxy.sock"),
      socketMode: 0o666,
      policy: {
        mode: "list",
        allow: [port === "" ? hostname : `${hostname}:${port}`],
        // A mirror of one's own may be anywhere.
        allowPrivate: [80, 443, Number(port || 80)].map((one) => `${address}:${one}`),
      },
      resolve: () => Promise.resolve([address]),
    }),
  )
  const programs = { init: join(dist, "warren-init"), launch: join(dist, "warren-launch") }
  const driver = scope.use(await openOciDriver({ root: join(root, "oci"), programs, log: silentLog }))
  const limits = { ...defaultLimits, memoryBytes: 2 ** 31, ...(driver.abilities.diskLimit ? {} : { diskBytes: 0 }) }
  const spec = specOf(await hostImage(join(root, "host-image")), { limits, network: { mode: "proxy", folder } })
  await driver.create(spec, never)
  scope.defer(() => driver.destroy(spec.id))
  const sandbox = await driver.start(spec.id, never)
  const before = hostState()
  const sh = (command: string): Promise<ExecResult> =>
    exec(sandbox, { argv: ["bash", "-c", `(${command}) 2>&1`], env: proxyEnvironment(), timeoutMs: 120_000 })
  const text = async (command: string): Promise<string> => (await sh(command)).stdout.toString()

  expect(await text("dpkg -s coreutils | grep ^Status")).toBe("Status: install ok installed\n")
  const updated = await sh("sudo apt-get update -q")
  expect([updated.code, updated.stdout.toString()]).toEqual([0, expect.stringContaining("Reading package lists")])
  const installed = await sh("sudo apt-get install -qy --no-install-recommends hello")
  expect([installed.code, installed.stdout.toString()]).toEqual([0, expect.stringMatching(/Setting up hello/)])
  expect(await text("hello; dpkg -s hello | grep ^Status")).toBe("Hello, world!\nStatus: install ok installed\n")
  expect(
    await text(
      "sudo useradd -m -s /bin/bash anna && id -u anna && sudo -u anna sh -c 'id -un; touch ~/mine && stat -c %U ~/mine'",
    ),
  ).toBe("1001\nanna\nanna\n")
  expect(await text("sudo apt-get remove -qqy hello >/dev/null && command -v hello; echo gone")).toBe("gone\n")
  // What it wrote is its own, also when it starts again.
  await driver.stop(spec.id)
  const again = await driver.start(spec.id, never)
  expect((await exec(again, { argv: ["id", "-u", "anna"] })).stdout.toString()).toBe("1001\n")
  expect(hostState()).toEqual(before)
}, 240_000)
