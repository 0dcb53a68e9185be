import { readdirSync, readFileSync } from "node:fs"
import type { SandboxSpec } from "@warren/drivers/sandbox-spec.ts"
import { elapsedMs, type Context } from "../metric.ts"
import { memoryOfGroup, privateBytes } from "../sandbox-memory.ts"
import { Dockerd } from "./dockerd.ts"
import type { Engine } from "./engine.ts"
import type { Rival } from "./rival.ts"

const image = "warren-bench"

/** Docker on our image: its own layer imported, the machine's `/usr` bound. */
export class DockerRival implements Rival {
  readonly name = "docker"
  readonly how: string
  readonly #dockerd: Dockerd
  readonly #engine: Engine
  readonly #spec: SandboxSpec
  readonly #asleep: string[] = []

  private constructor(dockerd: Dockerd, spec: SandboxSpec, version: string) {
    this.#dockerd = dockerd
    this.#engine = dockerd.engine
    this.#spec = spec
    this.how =
      `dockerd ${version}, over its API without its client: create, start, wait, remove; exec create and start. ` +
      "Docker's own seccomp and masks, no user namespace, `/usr` bound read-only. Memory: with the shim of each"
  }

  static async start(context: Context, program: string, spec: SandboxSpec): Promise<DockerRival> {
    const dockerd = await Dockerd.start(context, program)
    for (const layer of spec.image.layers) await dockerd.engine.import(layer, image)
    return new DockerRival(dockerd, spec, await dockerd.engine.version())
  }

  cycle(): Promise<number> {
    return elapsedMs(async () => {
      const id = await this.#engine.create(this.#container(["true"]))
      await this.#engine.start(id)
      const code = await this.#engine.wait(id)
      if (code !== 0) throw new Error(`true ended with ${code} in docker`)
      await this.#engine.remove(id)
    })
  }

  async start(): Promise<void> {
    const id = await this.#engine.create(this.#container(["sleep", "infinity"]))
    this.#asleep.push(id)
    await this.#engine.start(id)
  }

  exec(): Promise<number> {
    return elapsedMs(() => this.#engine.exec(this.#asleep.at(-1) ?? "", ["true"]))
  }

  memory(): Promise<number> {
    const shims = shimsOf(this.#asleep).reduce((total, pid) => total + privateBytes(pid), 0)
    const inside = this.#asleep.reduce((total, id) => {
      const { own, kernel } = memoryOfGroup(`${this.#dockerd.parent}/${id}`)
      return total + own + kernel
    }, 0)
    return Promise.resolve(shims + inside)
  }

  async stop(): Promise<void> {
    for (const id of this.#asleep.splice(0)) await this.#engine.remove(id)
  }

  #container(argv: readonly string[]): object {
    const { cpus, memoryBytes, pidsMax } = this.#spec.limits
    return {
      Image: image,
      Cmd: argv,
      User: "65533:65533",
      NetworkDisabled: true,
      HostConfig: {
        NetworkMode: "none",
        Binds: (this.#spec.image.grafts ?? []).map(({ from, to }) => `${from}:${to}:ro`),
        Memory: memoryBytes,
        MemorySwap: memoryBytes,
        NanoCpus: cpus * 1e9,
        PidsLimit: pidsMax,
        CapDrop: ["ALL"],
        SecurityOpt: ["no-new-privileges"],
      },
    }
  }
}

/** The processes that wait beside these containers. */
function shimsOf(ids: readonly string[]): string[] {
  const known = new Set(ids)
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    const words = wordsOf(pid)
    return words[0]?.includes("containerd-shim") === true && words.some((word) => known.has(word))
  })
}

function wordsOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")
  } catch {
    return []
  }
}
