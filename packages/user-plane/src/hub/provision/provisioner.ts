import { posix } from "node:path"
import { Fault, isCancellation } from "@warren/base/fault.ts"
import type { Provision, ProvisionProgress, Provisioned, ProvisionStep } from "@warren/protocol/user-plane/provision.ts"
import { Git } from "../../git/git.ts"
import type { Workbench } from "../../git/workbench.ts"
import { bring, checkOut, findSite, type Site } from "./checkout.ts"

type Tell = (progress: ProvisionProgress) => void

/** Where an agent's own things are: in its home, beside every repository. */
const ownFolder = ".warren"

/** Makes a session ready for its agent, step by step. Done again it changes nothing that is there; the failing step is named. */
export async function provision(
  wishes: Provision,
  bench: Workbench,
  tell: Tell,
  signal: AbortSignal,
): Promise<Provisioned> {
  const steps = new Steps(tell, signal)
  const { repo } = wishes
  if (repo !== undefined || wishes.identity) await steps.take("identity", () => identify(wishes, bench, signal))
  const found = repo === undefined ? {} : await repository({ ...wishes, repo }, bench, steps, signal)
  const given =
    wishes.persona === undefined && wishes.instructions === undefined
      ? { instructions: [] }
      : await steps.take("files", () => guide(wishes, bench, signal))
  const { attachments: files = [] } = wishes
  const attachments =
    files.length === 0 ? [] : await steps.take("attachments", () => attach(files, "start", bench, signal))
  return { ...found, ...given, attachments }
}

async function repository(
  wishes: Provision & { repo: string },
  bench: Workbench,
  steps: Steps,
  signal: AbortSignal,
): Promise<Pick<Provisioned, "folder" | "branch" | "commit">> {
  let site: Site | undefined
  try {
    site = await findSite(wishes, bench, signal)
  } catch (failure) {
    throw steps.failed("clone", failure)
  }
  const { git, isKnown } = site
  const step = isKnown ? "fetch" : "clone"
  const at = site
  await steps.take(step, (progress) => bring(at, wishes, percentOf(progress), bench, signal), git.folder)
  await steps.take("checkout", async (_, say) => say(await checkOut(at, wishes, signal)))
  const branch = await git.maybe(["symbolic-ref", "--short", "--quiet", "HEAD"], signal)
  const commit = await git.maybe(["rev-parse", "--verify", "--quiet", "HEAD"], signal)
  return {
    folder: git.folder,
    ...(branch === undefined ? {} : { branch }),
    ...(commit === undefined ? {} : { commit }),
  }
}

/** Tells of each step when it begins, while it goes on, and when it is over. */
class Steps {
  readonly #tell: Tell
  readonly #signal: AbortSignal

  constructor(tell: Tell, signal: AbortSignal) {
    this.#tell = tell
    this.#signal = signal
  }

  async take<T>(
    step: ProvisionStep,
    work: (progress: (percent: number) => void, say: (detail: string) => void) => Promise<T>,
    about?: string,
  ): Promise<T> {
    let detail = about
    const told = (): { detail?: string } => (detail === undefined ? {} : { detail })
    this.#signal.throwIfAborted()
    this.#tell({ step, state: "running", ...told() })
    try {
      const result = await work(
        (percent) => this.#tell({ step, state: "running", percent, ...told() }),
        (text) => (detail = text),
      )
      this.#tell({ step, state: "done", ...told() })
      return result
    } catch (failure) {
      throw this.failed(step, failure)
    }
  }

  failed(step: ProvisionStep, failure: unknown): unknown {
    const isUnwanted = this.#signal.aborted || isCancellation(failure)
    const fault = Fault.from(failure)
    const message = isUnwanted ? "no longer wanted" : fault.message
    this.#tell({ step, state: "failed", detail: message.slice(0, detailCharsMax) })
    if (isUnwanted) return this.#signal.aborted ? this.#signal.reason : failure
    const { code, hint } = fault
    return new Fault(code, `${step}: ${message}`, { hint, subject: `step:${step}`, cause: failure })
  }
}

const detailCharsMax = 1_024

/** Git tells how far it is in lines that it overwrites; each tenth is worth an item. */
function percentOf(progress: (percent: number) => void): (complaint: string) => void {
  let last = -1
  return (complaint) => {
    const [, percent] = [...complaint.matchAll(/Receiving objects:\s+(\d{1,3})%/g)].at(-1) ?? []
    const tenth = percent === undefined ? last : Math.floor(Number(percent) / 10)
    if (tenth <= last) return
    last = tenth
    progress(Math.min(100, tenth * 10))
  }
}

const anybody = { name: "Warren agent", email: "agent@localhost" }

/** Commits need a name. One that is there is not overruled by the usual one. */
async function identify({ identity }: Provision, bench: Workbench, signal: AbortSignal): Promise<void> {
  const git = new Git(bench, bench.home)
  if (!identity && (await git.maybe(["config", "--global", "--get", "user.email"], signal)) !== undefined) return
  const { name, email } = identity ?? anybody
  await git.run(["config", "--global", "user.name", name], signal)
  await git.run(["config", "--global", "user.email", email], signal)
}

/** Who it is and what it heeds, as files of its own: what an earlier start had given is gone. */
async function guide(
  { persona, instructions = [] }: Provision,
  bench: Workbench,
  signal: AbortSignal,
): Promise<Pick<Provisioned, "persona" | "instructions">> {
  const folder = posix.join(bench.home, ownFolder, "agent")
  const removed = await bench.run(["rm", "-rf", "--", folder], { timeoutMs: 30_000 }, signal)
  if (removed.code !== 0) throw new Fault("unavailable", `cannot empty ${folder}: ${removed.stderr.toString().trim()}`)
  const paths: string[] = []
  for (const { name, text } of instructions) {
    const path = posix.join(folder, "instructions", name)
    await bench.write(path, Buffer.from(text), signal)
    paths.push(path)
  }
  if (persona === undefined) return { instructions: paths }
  const path = posix.join(folder, "persona.md")
  await bench.write(path, Buffer.from(persona), signal)
  return { persona: path, instructions: paths }
}

/** Files that came along, in a folder for each occasion. Two of one name are both kept. */
export async function attach(
  files: readonly { readonly filename: string; readonly data: string }[],
  occasion: string,
  bench: Workbench,
  signal: AbortSignal,
): Promise<string[]> {
  const paths: string[] = []
  for (const { filename, data } of files) {
    const folder = posix.join(bench.home, ownFolder, "attachments", occasion)
    const plain = posix.join(folder, filename)
    const path = paths.includes(plain) ? posix.join(folder, `${paths.length}-${filename}`) : plain
    await bench.write(path, Buffer.from(data, "base64"), signal)
    paths.push(path)
  }
  return paths
}
