import { readdirSync } from "node:fs"
import { join, resolve } from "node:path"
import { silentLog } from "@warren/base/log.ts"
import { canLendLayers, type Driver } from "@warren/drivers/driver.ts"
import { exec } from "@warren/drivers/init/exec.ts"
import { never } from "@warren/drivers/oci/testing/fixture.ts"
import { ociSubject } from "@warren/drivers/oci/testing/subject.ts"
import { defaultLimits } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { ImageEvent } from "../events.ts"
import { Images } from "../images.ts"
import { buildShipped, type ShippedImage } from "./shipped.ts"
import { findSupplies } from "./supplies.ts"

/** Without Debian's packages there is nothing to make a Debian of. */
const hasDebian = await findSupplies().then(
  () => true,
  () => false,
)
/** The larger ones take minutes and gigabytes: only when asked for. */
const isAll = process.env["WARREN_IMAGES"] === "all"
const recipes = resolve(import.meta.dirname, "../../../../../images")
const subject = ociSubject()
let driver: Driver
let images: Images
let root: string

beforeAll(async () => {
  driver = await subject.open()
  root = (canLendLayers(driver) ? driver.imagesFolder : undefined) ?? join(subject.root, "images")
  images = await Images.open({ root, log: silentLog })
})
afterAll(async () => {
  await images[Symbol.asyncDispose]()
  await driver[Symbol.asyncDispose]()
})

async function built(name: ShippedImage): Promise<string[]> {
  const made: string[] = []
  const progress = (event: ImageEvent): void => {
    if (event.kind === "step" && !event.isCached) made.push(event.text.split(/\s/)[0] ?? "")
  }
  await buildShipped(name, { images, driver, recipes, progress, signal: never })
  return made
}

/** What a command says in a sandbox of an image, as the image's own user and without a network. */
async function said(name: string, command: string): Promise<string> {
  const { env, workdir } = images.inspect(name)
  const limits = { ...defaultLimits, memoryBytes: 2 * 2 ** 30, pidsMax: 1024 }
  const spec = specOf(await images.use(name, "test"), { limits })
  await driver.create(spec, never)
  try {
    const sandbox = await driver.start(spec.id, never)
    const variables = Object.fromEntries(env.map((pair) => [pair.split("=")[0], pair.slice(pair.indexOf("=") + 1)]))
    const argv = ["bash", "-c", command]
    const { stdout, stderr, code } = await exec(sandbox, { argv, env: variables, cwd: workdir, timeoutMs: 120_000 })
    if (code !== 0) throw new Error(`${command} ended with ${code}: ${stdout.toString()}${stderr.toString()}`)
    return stdout.toString()
  } finally {
    await driver.destroy(spec.id)
    images.release("test")
  }
}

describe.skipIf(!hasDebian)("the images that come with Warren", () => {
  test("base is made of Debian's packages, works, and is not made again", { timeout: 300_000 }, async () => {
    expect(await built("base")).toContain("RUN")
    expect(await said("base", "git --version; curl --version | head -1; id -un; pwd")).toMatch(
      /^git version .*\ncurl .*\nuser\n\/workspace\n$/,
    )
    expect(
      await said("base", "dpkg --audit; ls -A /run /packages /var/lib/apt/lists 2>&1 | grep -v warren"),
    ).not.toMatch(/supplies|\.deb/)
    expect(await built("base")).toEqual(["FROM"])
    // What was only on the way to it goes, what it is made of stays, and no sandbox does.
    await images.gc()
    const { layers } = images.inspect("base")
    const debian = images.list().find(({ names }) => names.some((name) => name.includes("/debian:")))
    const needed = new Set([...layers, ...images.inspect(debian?.id ?? "").layers].map(({ digest }) => digest.slice(7)))
    const kept = new Set(images.store.catalog.layers().map(({ digest }) => digest.slice(7)))
    expect([...needed].filter((digest) => !kept.has(digest))).toEqual([])
    expect(images.store.catalog.workers()).toEqual([])
    expect(readdirSync(join(subject.root, "volume")).filter((name) => name.startsWith("sbx_"))).toEqual([])
    expect(readdirSync(join(root, "drafts"))).toEqual([])
  })

  test.skipIf(!isAll)("agent has Node, Python and two agents", { timeout: 900_000 }, async () => {
    await built("agent")
    const programs = "node -v; npm -v; npx -v; python3 -V; rg -V | head -1; cc --version | head -1"
    expect(await said("agent", `set -e; ${programs}`)).toMatch(/^v24\..*\n11\..*\n11\..*\nPython 3.*\nripgrep .*\ncc /)
    expect(await said("agent", "set -e; opencode --version; claude --version")).toMatch(
      /^1\.18\.\d+\n2\.1\.\d+ \(Claude Code\)\n$/,
    )
  })

  test.skipIf(!isAll)("desktop shows a page on a screen", { timeout: 900_000 }, async () => {
    await built("desktop")
    expect(await said("desktop", "set -e; chromium --version; opencode --version")).toMatch(/^Chromium \d+.*\n1\.18/)
    const screen = `start-desktop > /tmp/desktop.log 2>&1 &
      until xprop -root _NET_SUPPORTING_WM_CHECK 2>/dev/null | grep -q window; do kill -0 $! && sleep 0.1; done
      echo '<title>a page of ours</title>' > page.html
      chromium page.html > /tmp/chromium.log 2>&1 &
      until xwininfo -root -tree | grep 'a page of ours'; do kill -0 $! || { cat /tmp/chromium.log; exit 1; }; sleep 0.1; done
      test -S "$(find /tmp/desktop-* -name vnc.sock)" && echo a socket`
    expect(await said("desktop", screen)).toMatch(/a page of ours[^]*a socket/)
  })
})
