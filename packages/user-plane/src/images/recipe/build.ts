import { Fault } from "@warren/base/fault.ts"
import type { Driver } from "@warren/drivers/driver.ts"
import { Execution } from "@warren/drivers/init/exec.ts"
import type { SandboxSpec } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import type { LayerRecord } from "../catalog.ts"
import { checkHeight, lender } from "../commit.ts"
import { digestBytes, type Digest } from "../digest.ts"
import type { Progress } from "../events.ts"
import { describe } from "../import/sources.ts"
import type { Images } from "../images.ts"
import { platformOf } from "../manifest.ts"
import type { Pin } from "../store.ts"
import { workerLimits } from "../worker-limits.ts"
import { copyArchive, folderArchive, hashOf } from "./copy.ts"
import { command, expand, mistake, pairs, readRecipe, words, type Step } from "./recipe.ts"

export interface BuildOptions {
  readonly images: Images
  readonly driver: Driver
  readonly recipe: string
  /** Where COPY finds files. */
  readonly context: string
  readonly name: string
  readonly args?: Readonly<Record<string, string>>
  /** What RUN has in its environment beside the recipe's: a proxy, say. It is not part of the image, and what it is changes no step. */
  readonly env?: Readonly<Record<string, string>>
  /** How the sandboxes of RUN differ from the usual: limits, network. */
  readonly sandbox?: Partial<SandboxSpec>
  readonly stepMs?: number
  readonly progress?: Progress
  readonly signal?: AbortSignal
}

interface MakeOptions {
  readonly signal: AbortSignal
  readonly pin: Pin
}

const stepMsDefault = 30 * 60_000
/** Of what a failed step said, in its fault. */
const tailChars = 2000
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/** Makes an image of a recipe: each RUN in a sandbox of its own, whose writable layer becomes the image's next one. */
export async function build(options: BuildOptions): Promise<Digest> {
  const steps = readRecipe(options.recipe)
  await options.images.sweep(options.driver)
  using work = new Build(options)
  for (const [index, step] of steps.entries()) {
    options.signal?.throwIfAborted()
    await work.take(step, index, steps.length)
  }
  return await work.finish()
}

class Build implements Disposable {
  readonly #options: BuildOptions
  readonly #pins: Disposable[] = []
  /** The bottom one first. */
  #layers: Digest[] = []
  #env = new Map<string, string>()
  #args = new Map<string, string>()
  #workdir = "/"
  #user = "root"
  #kept: Record<string, unknown> = {}
  #labels: Record<string, string> = {}

  constructor(options: BuildOptions) {
    this.#options = options
  }

  async take(step: Step, index: number, total: number): Promise<void> {
    const told = (isCached: boolean): void =>
      this.#options.progress?.({ kind: "step", index: index + 1, total, text: `${step.verb} ${step.text}`, isCached })
    const filled = expand(step.text, new Map([...this.#args, ...this.#env]))
    switch (step.verb) {
      case "FROM":
        told(false)
        return this.#from(step, filled)
      case "RUN":
        return this.#layer(step, [command(step), this.#env, this.#args], told, (options) => this.#run(step, options))
      case "COPY":
        return this.#copy(step, words(step, filled), told)
      case "WORKDIR":
        this.#workdir = filled.startsWith("/") ? filled : `${this.#workdir.replace(/\/$/, "")}/${filled}`
        return this.#layer(step, [this.#workdir], told, async (options) => {
          await using view = this.#options.images.view(this.#layers)
          const archive = await folderArchive(view, this.#workdir)
          return archive && (await this.#options.images.store.add(archive, options))
        })
      case "ENV":
        for (const [key, value] of pairs(step, filled)) this.#env.set(key, value)
        return told(true)
      case "ARG":
        return this.#argument(step, filled)
      case "USER":
        this.#user = filled
        return told(true)
      case "LABEL":
        for (const [key, value] of pairs(step, filled)) this.#labels[key] = value
        return told(true)
      case "CMD":
      case "ENTRYPOINT":
        this.#kept[step.verb === "CMD" ? "Cmd" : "Entrypoint"] = command(step)
        return told(true)
    }
  }

  finish(): Promise<Digest> {
    const { os, architecture } = platformOf(undefined)
    const config = {
      Env: [...this.#env].map(([key, value]) => `${key}=${value}`),
      WorkingDir: this.#workdir,
      User: this.#user,
      Labels: this.#labels,
      ...this.#kept,
    }
    const text = JSON.stringify({ os, architecture, config, rootfs: { type: "layers", diff_ids: this.#layers } })
    return this.#options.images.add(describe(text, this.#layers), [this.#options.name], this.#options.signal)
  }

  [Symbol.dispose](): void {
    for (const pin of this.#pins) pin[Symbol.dispose]()
  }

  #from(step: Step, text: string): void {
    if (text === "scratch") return
    if (text === "host") throw mistake(step, "the machine itself cannot be built upon: it is not made of layers")
    const { layers, config } = this.#options.images.content(text)
    this.#pin(layers)
    this.#layers = [...layers]
    for (const pair of config?.Env ?? [])
      this.#env.set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1))
    this.#workdir = config?.WorkingDir || "/"
    this.#user = config?.User || "root"
    if (config?.Cmd) this.#kept["Cmd"] = config.Cmd
    if (config?.Entrypoint) this.#kept["Entrypoint"] = config.Entrypoint
  }

  #argument(step: Step, text: string): void {
    const [, name = "", otherwise] = /^([A-Za-z_]\w*)(?:=([\s\S]*))?$/.exec(text) ?? []
    if (name === "") throw mistake(step, `${JSON.stringify(text)} is not a name`)
    const value = this.#options.args?.[name] ?? otherwise
    if (value !== undefined) this.#args.set(name, value)
  }

  async #copy(step: Step, given: readonly string[], told: (isCached: boolean) => void): Promise<void> {
    const options = given.filter((word) => word.startsWith("--"))
    const places = given.filter((word) => !word.startsWith("--"))
    const owner = /^--chown=(\d+)(?::(\d+))?$/.exec(options[0] ?? "--chown=0:0")
    if (!owner || options.length > 1) throw mistake(step, "of options COPY knows --chown=uid:gid")
    const uid = Number(owner[1])
    const gid = Number(owner[2] ?? owner[1])
    const to = places.at(-1) ?? ""
    const from = places.slice(0, -1)
    if (from.length === 0) throw mistake(step, "COPY wants something and a place for it")
    const target = to.startsWith("/") ? to : `${this.#workdir.replace(/\/$/, "")}/${to}`
    const files = await copyArchive({ context: this.#options.context, from, to: target, owner: { uid, gid } }, step)
    const { images } = this.#options
    const below = [...this.#layers]
    async function* placed(): AsyncGenerator<Uint8Array, void, void> {
      await using view = images.view(below)
      yield* files(view)
    }
    return this.#layer(step, [target, uid, gid, await hashOf(files)], told, (options) =>
      images.store.add(placed(), options),
    )
  }

  /** The layer of a step: the one it made last time, if nothing it depends on has changed, or a new one. */
  async #layer(
    step: Step,
    depends: readonly unknown[],
    told: (isCached: boolean) => void,
    make: (options: MakeOptions) => Promise<LayerRecord | undefined>,
  ): Promise<void> {
    const { images, signal = new AbortController().signal } = this.#options
    const { catalog } = images.store
    const about = [...depends].map((item) => (item instanceof Map ? [...(item as Map<string, string>)] : item))
    const key = digestBytes(JSON.stringify([this.#layers, step.verb, about, this.#workdir, this.#user]))
    const known = catalog.step(key, Date.now())
    told(known !== undefined)
    if (known !== undefined) {
      this.#pin([known])
      this.#layers.push(known)
      return
    }
    const made = await make({ signal, pin: (layers) => this.#pin(layers) })
    if (!made) return
    checkHeight([...this.#layers, made.digest])
    catalog.addStep(key, made.digest, Date.now())
    this.#layers.push(made.digest)
  }

  async #run(step: Step, { signal, pin }: MakeOptions): Promise<LayerRecord> {
    const { images, sandbox: changes } = this.#options
    const driver = lender(this.#options.driver)
    const stack = await images.stack(this.#layers, pin, signal)
    const spec = specOf(stack, { ...changes, limits: workerLimits(driver, changes?.limits) })
    return await images.withWorker(driver, spec, signal, async (sandbox) => {
      await this.#execute(step, sandbox, signal)
      await driver.stop(spec.id)
      return await driver.lendLayer(spec.id, (written) => images.store.take(written, { signal, pin }))
    })
  }

  async #execute(step: Step, sandbox: Awaited<ReturnType<Driver["start"]>>, signal: AbortSignal): Promise<void> {
    const env = {
      PATH: defaultPath,
      ...this.#options.env,
      ...Object.fromEntries(this.#args),
      ...Object.fromEntries(this.#env),
    }
    const timeoutMs = this.#options.stepMs ?? stepMsDefault
    const user = this.#user
    await using execution = await Execution.start(
      sandbox,
      { argv: command(step), env, user, cwd: this.#workdir, timeoutMs },
      signal,
    )
    let tail = ""
    for await (const { bytes } of execution.output()) {
      const text = bytes.toString()
      tail = (tail + text).slice(-tailChars)
      this.#options.progress?.({ kind: "output", text })
    }
    const { code, signal: killed, reason } = await execution.ended()
    if (code === 0) return
    const how = reason === "timeout" ? "took too long" : `ended with ${killed ?? code}`
    throw new Fault("invalid", `line ${step.line} of the recipe (RUN) ${how}`, {
      subject: `line:${step.line}`,
      hint: tail,
    })
  }

  #pin(layers: readonly Digest[]): void {
    this.#pins.push(this.#options.images.store.pin(layers))
  }
}
