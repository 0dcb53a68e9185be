import { spawn, type ChildProcessByStdio } from "node:child_process"
import { once } from "node:events"
import { mkdir, readdir, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { openCgroups } from "@warren/drivers/oci/cgroup/open.ts"
import { compileSeccomp } from "@warren/drivers/oci/seccomp/compile.ts"
import { archOf } from "@warren/drivers/oci/seccomp/syscalls.ts"
import { bindsOf } from "@warren/drivers/oci/spec/binds.ts"
import { etcFiles } from "@warren/drivers/oci/spec/etc-files.ts"
import { compile } from "../launch/build.ts"
import type { Context } from "./metric.ts"
import type { Sandboxes } from "./sandboxes.ts"
import { bind, cgroupSteps, mount, mountSteps, type CgroupSteps, type Step } from "./steps.ts"
import { bwrapArguments, bwrapIdleArguments, crowdConfig, crunConfig, plainConfig, type Stock } from "./stock.ts"

/** Programs that make sandboxes on the roots, mounts and limits of ours. */
export type Stranger = "crun" | "runc" | "bwrap"
type CrowdWay = `${Stranger} ${"cycle" | "start" | "exec" | "stop"}`
export type Way = "crun run" | "crun delete" | "bwrap" | "floor" | "true" | "pipe to cat" | CrowdWay

const sources = "bench/baseline"
/** Where the program sees what sandboxes are made from, in a mount namespace of its own. */
const stage = "/mnt"
const sleep = ["/usr/bin/sleep", "infinity"]

/** What sandboxes are measured against, in a small process of its own (`bench/baseline/`) that also holds the clock. */
export class Baseline implements AsyncDisposable {
  /** The cgroup that holds all groups it makes, below every hierarchy. */
  readonly parent: string
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #lines: AsyncIterator<string>

  private constructor(parent: string, child: ChildProcessByStdio<Writable, Readable, null>) {
    this.parent = parent
    this.#child = child
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  }

  /** Compiles and starts it, with the image and the limits of our sandboxes. The context's scope ends it. */
  static async start(context: Context, sandboxes: Sandboxes): Promise<Baseline> {
    const folder = join(context.folder, "baseline")
    await mkdir(folder)
    const files = (await readdir(sources)).filter((file) => file.endsWith(".c")).map((file) => join(sources, file))
    const program = await compile(files, join(folder, "program"))
    const parent = `warren-bench-${process.pid}`
    await write(folder, sandboxes, parent)
    // In a session of its own: Ctrl-C is for the one that measures, which ends this one in order.
    const child = spawn(program, [folder, sandboxes.programs.init, parent], {
      stdio: ["pipe", "pipe", "inherit"],
      detached: true,
    })
    child.stdin.on("error", () => undefined)
    return context.scope.use(new Baseline(parent, child))
  }

  /** Milliseconds that one took. */
  async take(way: Way): Promise<number> {
    this.#child.stdin.write(`${way}\n`)
    const line: IteratorResult<string, void> = await this.#lines.next()
    if (line.done === true) throw new Error(`the baseline "${way}" ended`)
    if (line.value.startsWith("!")) throw new Error(`the baseline "${way}" failed: ${line.value}`)
    return Number(line.value) / 1_000
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, "exit")
    this.#child.stdin.end()
    await gone
  }
}

/** Everything the program reads when it starts. */
async function write(folder: string, sandboxes: Sandboxes, parent: string): Promise<void> {
  const spec = sandboxes.spec()
  const arch = archOf(process.arch)
  if (!arch) throw new Error(`there is no system call filter for ${process.arch}`)
  const asDriver = {
    profile: spec.profile,
    isRootReadOnly: false,
    init: `${stage}/init`,
    etcFolder: `${stage}/etc`,
    asked: [],
  }
  const stock: Stock = { spec, binds: bindsOf(asDriver) }
  const targets = stock.binds.map(({ to }) => to)
  const grafts = spec.image.grafts ?? []
  await touchTargets(
    folder,
    targets,
    grafts.map(({ to }) => to),
  )
  await mkdir(join(folder, "etc"))
  for (const [name, text] of Object.entries(etcFiles(spec.hostname, spec.dns))) {
    await writeFile(join(folder, "etc", name), text, { mode: 0o644 })
  }
  const cgroups = openCgroups(parent)
  // Made once to see which files there are.
  const probe = cgroups.make("one", spec.limits)
  const groups = cgroupSteps(cgroups.version === 1 ? 1 : 2, probe.folders, spec.limits)
  const crowd = numbered(groups)
  const layered = [{ to: "/", lowers: spec.image.layers }, ...grafts.map(({ from, to }) => ({ to, lowers: [from] }))]
  const overlays = layered.map(({ to, lowers }, index) => ({
    at: join(`${stage}/bundle/root`, to),
    steps: overlaySteps(join(`${stage}/bundle/root`, to), [join(folder, `targets-${index}`), ...lowers], index),
  }))
  const floor = [
    ...stock.binds.flatMap(({ from, to }) => {
      const source = from === asDriver.init ? `${stage}/pid1` : from
      return bind(source, to.slice(1), ["readonly", "nosuid", "nodev"])
    }),
    ...mountSteps(plainConfig(stock)),
  ]
  const files: Readonly<Record<string, string | Buffer>> = {
    layers: text(overlays.flatMap(({ steps }) => steps)),
    unlayer: text(overlays.toReversed().map(({ at }): Step => ["umount", at])),
    cgroup: text(groups.make),
    "cgroup.join": text(groups.join),
    uncgroup: text(groups.remove),
    "floor.mounts": text(floor),
    "seccomp.bpf": compileSeccomp(spec.profile, arch),
    bwrap: `${bwrapArguments(stock).join("\0")}\0`,
    "config.json": JSON.stringify(crunConfig(stock, `/${parent}/stock`, ["/usr/bin/true"])),
    "idle.json": JSON.stringify(crunConfig(stock, `/${parent}/stock`, sleep)),
    "idle.crun.json": JSON.stringify(crowdConfig(stock, `/${parent}/crun-@@`, sleep)),
    "idle.runc.json": JSON.stringify(crowdConfig(stock, `/${parent}/runc-@@`, sleep)),
    "bwrap.idle": `${bwrapIdleArguments(stock, sleep).join("\0")}\0`,
    "crowd.cgroup": text(crowd.make),
    "crowd.join": text(crowd.join),
    "crowd.uncgroup": text(crowd.remove),
  }
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content, { mode: 0o644 })
}

/** The groups of one of many: `baseline/crowd.c` puts its number in. */
function numbered({ make, join, remove }: CgroupSteps): CgroupSteps {
  const own = (steps: readonly Step[]): Step[] =>
    steps.map(([act, path = "", ...words]) => [act, path.replace(/\/one(?=\/|$)/, "/bwrap-@@"), ...words])
  return { make: own(make), join: own(join), remove: own(remove) }
}

function text(steps: readonly Step[]): string {
  return steps.map((step) => `${step.join("\t")}\n`).join("")
}

/** Places to bind at, in a layer of their own: so no baseline pays for making them. */
async function touchTargets(folder: string, targets: readonly string[], grafts: readonly string[]): Promise<void> {
  for (const [index, place] of ["/", ...grafts].entries()) {
    const layer = join(folder, `targets-${index}`)
    await mkdir(layer)
    const isHere = (target: string): boolean =>
      grafts.findIndex((graft) => target.startsWith(`${graft}/`)) === index - 1
    for (const target of targets.filter(isHere)) {
      const file = join(layer, target.slice(place === "/" ? 0 : place.length))
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, "")
    }
  }
}

/** Names relative to the round's folder, where the writable layer is new every time. */
function overlaySteps(at: string, lowers: readonly string[], index: number): readonly Step[] {
  const options = `lowerdir=${lowers.join(":")},upperdir=layer-${index},workdir=work-${index}`
  return [
    ["mkdir", `layer-${index}`],
    ["mkdir", `work-${index}`],
    mount("overlay", at, "overlay", ["nosuid", "nodev"], options),
  ]
}
