import { spawn } from "node:child_process"
import { once } from "node:events"
import { createReadStream } from "node:fs"
import { readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import type { ImageProgress } from "@warren/protocol/user-plane/images.ts"
import type { z } from "zod"
import { flag } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { withRunner, type Desk } from "../desk.ts"
import { upload } from "../runner/upload.ts"
import { readSecret } from "../terminal/read-secret.ts"
import { bytesText } from "../terminal/units.ts"
import { verb } from "../verb.ts"
import { given } from "./wishes.ts"

type Said = z.output<typeof ImageProgress>

const pull = verb({
  name: "images pull",
  group: "Images",
  doc: "Bring an image from a registry. What has come is kept for the next try when it is stopped.",
  examples: ["warren images pull debian:12", "warren images pull ghcr.io/me/tools:1 --username me < token.txt"],
  flags: {
    platform: flag.text("PLATFORM", "Such as `linux/arm64`; this machine's own when absent."),
    username: flag.text("NAME", "Who logs in; the password comes from the standard input."),
  },
  words: { image: word.one("IMAGE", "Its name, such as `debian:12`.") },
  async run({ flags, words }, desk) {
    const { username, platform } = flags
    const password =
      username === undefined ? undefined : await readSecret(desk.terminal, `Password of ${username}: `, desk.signal)
    using bringing = new Bringing(desk)
    await withRunner(desk, async (runner) => {
      const input = { name: words.image, ...given({ platform, username, password }) }
      for await (const { item } of runner.feed("image.pull", input)) bringing.hear(item)
    })
    await bringing.done()
  },
})

const bring = verb({
  name: "images import",
  group: "Images",
  doc: "Bring an image as an archive: a tree of files, an OCI layout, or what `docker save` writes.",
  examples: [
    "docker save tools:1 | warren images import - --name tools:1",
    "warren images import rootfs.tar --name mine",
  ],
  flags: {
    name: flag.text("NAME", "Its name, when the archive does not say or another is wanted."),
    format: flag.choice(["rootfs", "oci", "docker"], "What the archive is, when it is not to be guessed."),
    platform: flag.text("PLATFORM", "Which one, when there are several."),
  },
  words: { file: word.one("FILE", "The archive; `-` is the standard input.", { completes: "file" }) },
  async run({ flags, words: { file } }, desk) {
    const total = file === "-" ? undefined : await sizeOf(file)
    const source = file === "-" ? (desk.terminal.stdin as AsyncIterable<Buffer>) : createReadStream(file)
    using bringing = new Bringing(desk)
    await withRunner(desk, async (runner) => {
      const input = given({ name: flags.name, format: flags.format, platform: flags.platform })
      await using conversation = await runner.open("image.import", input)
      await upload(conversation, bringing.watch(source, total), (said) => bringing.hear(said))
    })
    await bringing.done()
  },
})

const build = verb({
  name: "images build",
  group: "Images",
  doc: "Make an image from a recipe. The files it copies are those of FOLDER.",
  examples: ["warren images build . --name tools:1", "warren images build images/base -n base --arg VERSION=2"],
  flags: {
    name: flag.text("NAME", "The name of the image.", { short: "n" }),
    file: flag.text("FILE", "The recipe; `Recipe` in the folder when absent.", { short: "f", completes: "file" }),
    arg: flag.pairs("What an ARG of the recipe is."),
    net: flag.choice(["none", "bridge", "host"], "What its RUN steps reach (`bridge`)."),
  },
  words: { folder: word.one("FOLDER", "Where its files are.", { completes: "file" }) },
  async run({ flags, words: { folder } }, desk) {
    const { name } = flags
    if (name === undefined) throw new Fault("invalid", "--name is missing: the name of the image")
    const recipe = await textOf(flags.file ?? join(folder, "Recipe"))
    using bringing = new Bringing(desk)
    await withRunner(desk, async (runner) => {
      const input = { name, recipe, args: { ...flags.arg }, ...given({ network: flags.net }) }
      await using conversation = await runner.open("image.build", input)
      await upload(conversation, archiveOf(folder), (said) => bringing.hear(said, true))
    })
    await bringing.done()
  },
})

export const imageSourceVerbs = [pull, bring, build]

/** An image on its way: says how far it is, and at the end which it was. */
class Bringing implements Disposable {
  readonly #desk: Desk
  readonly #progress
  #ids: readonly string[] = []

  constructor(desk: Desk) {
    this.#desk = desk
    this.#progress = desk.output.progress()
  }

  /** `isStep`: what is said is worth keeping on the screen, as a step of a build is. */
  hear({ text, bytes, totalBytes, ids }: Said, isStep = false): void {
    if (ids) this.#ids = ids
    if (isStep && text !== undefined) {
      this.#progress[Symbol.dispose]()
      this.#desk.output.note(text)
    } else this.#progress.say([text, bytes === undefined ? "" : amount(bytes, totalBytes)].filter(Boolean).join(" "))
  }

  async *watch(source: AsyncIterable<Buffer>, total: number | undefined): AsyncGenerator<Buffer> {
    let bytes = 0
    for await (const piece of source) {
      bytes += piece.length
      this.#progress.say(`Sending ${amount(bytes, total)}`)
      yield piece
    }
  }

  done(): Promise<void> {
    this.#progress[Symbol.dispose]()
    return this.#desk.output.show({ ids: this.#ids }, () => this.#ids.join("\n"))
  }

  [Symbol.dispose](): void {
    this.#progress[Symbol.dispose]()
  }
}

function amount(bytes: number, total: number | undefined): string {
  if (total === undefined || total === 0) return bytesText(bytes)
  return `${bytesText(bytes)} of ${bytesText(total)} (${Math.floor((bytes / total) * 100)} %)`
}

/** A folder as a tar archive, links as links. */
async function* archiveOf(folder: string): AsyncGenerator<Buffer> {
  const child = spawn("tar", ["-C", folder, "-cf", "-", "."], { stdio: ["ignore", "pipe", "inherit"] })
  const ended = once(child, "close") as Promise<[number | null]>
  try {
    yield* child.stdout as AsyncIterable<Buffer>
    const [code] = await ended
    if (code !== 0) throw new Fault("invalid", `${folder} could not be read`)
  } finally {
    child.kill()
  }
}

async function textOf(file: string): Promise<string> {
  return readFile(file, "utf8").catch((cause: unknown) => {
    throw new Fault("not_found", `the recipe ${file} cannot be read (${errnoOf(cause)})`, { cause })
  })
}

async function sizeOf(file: string): Promise<number> {
  const found = await stat(file).catch((cause: unknown) => {
    throw new Fault("not_found", `${file} cannot be read (${errnoOf(cause)})`, { cause })
  })
  return found.size
}
