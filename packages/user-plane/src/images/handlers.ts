import { constants } from "node:fs"
import { open } from "node:fs/promises"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { Driver } from "@warren/drivers/driver.ts"
import type { SandboxSpec } from "@warren/drivers/sandbox-spec.ts"
import type { Handlers, Item, Numbered } from "@warren/protocol/contract.ts"
import type { imageCalls } from "@warren/protocol/user-plane/images.ts"
import type { Pool } from "../pool/pool.ts"
import type { Sessions } from "../sessions/sessions.ts"
import type { Digest } from "./digest.ts"
import type { ImageEvent, Progress } from "./events.ts"
import type { Images, ImageSummary } from "./images.ts"
import { opened } from "./import/archive.ts"
import { Intake } from "./intake.ts"
import { build } from "./recipe/build.ts"
import { buildShipped } from "./shipped/shipped.ts"

type Calls = typeof imageCalls
type Told = Item<Calls, "image.pull">

export interface ImageParts {
  readonly images: Images
  /** What builds them. */
  readonly driver: Driver
  readonly sessions: Sessions
  readonly pool: Pool
  /** The folder with a folder for each recipe that comes with Warren. */
  readonly recipes: string
  /** For archives on their way in. */
  readonly scratch: string
}

export function imageHandlers(parts: ImageParts): Handlers<Calls> {
  const { images, driver, scratch } = parts
  const done = { ok: true } as const
  return {
    "image.list": async () => ({ items: images.list().map(shown) }),
    "image.inspect": async ({ name }) => {
      const { layers, env, command, usedBy, ...details } = images.inspect(name)
      return {
        ...details,
        ...shown(details),
        layers: [...layers],
        env: [...env],
        command: [...command],
        usedBy: [...usedBy],
      }
    },
    "image.pull": ({ name, platform, username, password }, { signal }) => {
      const credentials = username === undefined ? {} : { credentials: { username, password: password ?? "" } }
      return feed((progress) => one(images.pull(name, { platform, progress, signal, ...credentials })))
    },
    "image.import": ({ name, format, platform }, { signal }) =>
      Intake.open<Told>(
        scratch,
        async (file, tell, until) =>
          tell({ ids: await images.import(file, { name, format, platform, signal: until }) }),
        signal,
      ),
    "image.build": ({ name, recipe, args, network }, { signal }) => {
      const sandbox: Partial<SandboxSpec> = { network: { mode: network } }
      const work = async (file: string, tell: (told: Told) => void, until: AbortSignal): Promise<void> => {
        await using context = await opened(images.store, file, until)
        const progress: Progress = (event) => tell(toldOf(event))
        tell({
          ids: [
            await build({
              images,
              driver,
              recipe: recipe ?? (await recipeIn(context.folder)),
              context: context.folder,
              name,
              args,
              sandbox,
              progress,
              signal: until,
            }),
          ],
        })
      }
      return Intake.open<Told>(scratch, work, signal)
    },
    "image.make": ({ name }, { signal }) =>
      feed((progress) => one(buildShipped(name, { images, driver, recipes: parts.recipes, progress, signal }))),
    "image.tag": async ({ from, to }) => {
      images.tag(from, to)
      return done
    },
    "image.delete": async ({ name }) => {
      // What waits for somebody is no reason to keep it.
      await parts.pool.release(images.resolve(name))
      images.delete(name)
      return done
    },
    "image.gc": async () => {
      const collected = await images.gc()
      return { images: collected.images.length, layers: collected.layers.length, blobs: collected.blobs }
    },
    "image.commit": async ({ session, name }, { signal }) => {
      const { sandbox } = parts.sessions.record(session)
      if (sandbox === undefined) throw new Fault("conflict", "the session has no files any more")
      return { id: await images.commit(driver, sandbox, name, signal) }
    },
    "pool.list": async () => ({ pools: parts.pool.list() }),
  }
}

function shown({ id, names, madeAt, bytes, isBuiltIn }: ImageSummary) {
  return { id, names: [...names], madeAt: new Date(madeAt).toISOString(), bytes, isBuiltIn }
}

async function one(digest: Promise<Digest>): Promise<Digest[]> {
  return [await digest]
}

function toldOf(event: ImageEvent): Told {
  switch (event.kind) {
    case "output":
      return { text: event.text }
    case "step":
      return { text: `[${event.index}/${event.total}] ${event.text}${event.isCached ? " (as before)" : ""}\n` }
    case "resolved":
      return { text: `${event.layers} layers\n`, totalBytes: event.bytes }
    case "layer.downloading":
      return { text: event.layer, bytes: event.bytes, totalBytes: event.totalBytes }
    case "layer.present":
    case "layer.extracting":
    case "layer.done":
      return { text: `${event.kind.replace("layer.", "")} ${event.layer}\n` }
  }
}

/** More than this unread is thrown away, the oldest first: only the last item, with the ids, must arrive. */
const untoldMax = 1_000

/** What is told on the way, then what was made. */
async function* feed(work: (progress: Progress) => Promise<Digest[]>): AsyncGenerator<Numbered<Told>, void, void> {
  const waiting: Told[] = []
  let wake: (() => void) | undefined
  let end: { readonly ids: Digest[] } | { readonly failure: unknown } | undefined
  const progress: Progress = (event) => {
    if (waiting.length >= untoldMax) waiting.shift()
    waiting.push(toldOf(event))
    wake?.()
  }
  const finish = (result: typeof end): void => {
    end = result
    wake?.()
  }
  const working = work(progress).then(
    (ids) => finish({ ids }),
    (failure: unknown) => finish({ failure }),
  )
  let seq = 0
  try {
    for (;;) {
      const told = waiting.shift()
      if (told) yield { seq: ++seq, item: told }
      else if (end && "failure" in end) throw end.failure
      else if (end) return yield { seq: ++seq, item: { ids: [...end.ids] } }
      else await new Promise<void>((resolve) => (wake = resolve))
    }
  } finally {
    await working
  }
}

const recipeBytesMax = 256 * 1024

/** The recipe in what was sent. A link in its place would have us read something of our own machine. */
async function recipeIn(folder: string): Promise<string> {
  for (const name of ["Recipe", "Dockerfile"]) {
    const file = await open(join(folder, name), constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => undefined)
    if (!file) continue
    await using _ = file
    const about = await file.stat()
    if (about.isFile() && about.size <= recipeBytesMax) return file.readFile("utf8")
    throw new Fault("invalid", `${name} is no recipe: a file of at most ${recipeBytesMax} bytes`)
  }
  throw new Fault("invalid", "there is no recipe", { hint: "say one, or put a file `Recipe` into the archive" })
}
