import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { existsSync, openSync, closeSync, readFileSync } from "node:fs"
import { mkdir, readdir, rmdir, writeFile } from "node:fs/promises"
import { delimiter, join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import type { Context } from "../metric.ts"
import { Engine } from "./engine.ts"

const readyMs = 30_000
const groupTries = 1_000
const cgroups = "/sys/fs/cgroup"

/** Where a program is; where Debian puts those of administrators is looked at, too. */
export function programCalled(name: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/bin"]
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file))
}

/**
 * Docker's daemon in namespaces of its own for mounts, network and processes: its rules, bridges and mounts are not the machine's, and
 * all of it is gone with its first process, which waits for its standard input to end. What it writes is in the metric's folder.
 */
export class Dockerd implements AsyncDisposable {
  readonly engine: Engine
  /** The group above those of its containers. */
  readonly parent: string
  readonly #child: ChildProcess

  private constructor(engine: Engine, parent: string, child: ChildProcess) {
    this.engine = engine
    this.parent = parent
    this.#child = child
  }

  /** The context's scope ends it. */
  static async start(context: Context, program: string): Promise<Dockerd> {
    const folder = join(context.folder, "docker")
    await mkdir(folder)
    await writeFile(join(folder, "daemon.json"), JSON.stringify({ "deprecated-key-path": join(folder, "key.json") }))
    const parent = `warren-bench-docker-${process.pid}`
    const child = spawn("unshare", argumentsFor(program, folder, parent), {
      stdio: ["pipe", ...logOf(folder)],
      detached: true,
      env: { PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/usr/bin:/sbin:/bin` },
    })
    child.stdin?.on("error", () => undefined)
    const dockerd = context.scope.use(new Dockerd(new Engine(join(folder, "docker.sock")), parent, child))
    await dockerd.#ready(context.signal, join(folder, "log"))
    return dockerd
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.engine[Symbol.dispose]()
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const gone = once(this.#child, "exit")
      this.#child.stdin?.end()
      await gone
    }
    for (const hierarchy of await readdir(cgroups)) await removeGroups(join(cgroups, hierarchy, this.parent))
  }

  async #ready(signal: AbortSignal, log: string): Promise<void> {
    const deadline = performance.now() + readyMs
    while (!(await this.engine.isUp())) {
      signal.throwIfAborted()
      if (this.#child.exitCode !== null || performance.now() > deadline)
        throw new Error(`dockerd did not start: ${readFileSync(log, "utf8").split("\n").slice(-4).join(" ")}`)
      await sleep(50)
    }
  }
}

/** The shell is the first process of the namespace: when it leaves, the kernel ends the others. */
function argumentsFor(program: string, folder: string, parent: string): readonly string[] {
  const dockerd = [
    program,
    ...["--config-file", join(folder, "daemon.json"), "--data-root", join(folder, "data")],
    ...["--exec-root", "/run/docker", "--pidfile", "/run/docker.pid", "-H", `unix://${join(folder, "docker.sock")}`],
    ...["--storage-driver", "overlay2", "--bridge", "none", "--iptables=false", "--cgroup-parent", `/${parent}`],
    ...["--log-level", "warn"],
  ]
  // A daemon that ends by itself takes the shell with it, so that nobody waits for it.
  const script = 'trap "exit 1" TERM; { mount -t tmpfs run /run && "$@" </dev/null; kill $$; } & read -r _'
  return ["--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script, "sh", ...dockerd]
}

function logOf(folder: string): [number, number] {
  const file = openSync(join(folder, "log"), "a")
  // The child has it when `spawn` has returned.
  setImmediate(() => closeSync(file))
  return [file, file]
}

/** The deepest first. What has just died keeps its group for a moment. */
async function removeGroups(folder: string): Promise<void> {
  if (!existsSync(folder)) return
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isDirectory()) await removeGroups(join(folder, entry.name))
  for (let at = 0; at < groupTries; at++) {
    try {
      await rmdir(folder)
      return
    } catch {
      await sleep(5)
    }
  }
}
