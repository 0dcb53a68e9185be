import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { silentLog } from "@warren/base/log.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import type { Driver } from "@warren/drivers/driver.ts"
import { never, text } from "@warren/drivers/oci/testing/fixture.ts"
import { ociSubject } from "@warren/drivers/oci/testing/subject.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { ImageEvent } from "../events.ts"
import { Images } from "../images.ts"
import { writeTar } from "../tar/writer.ts"
import { busyboxTree, file, folder, symlink } from "../testing/archives.ts"
import { build, type BuildOptions } from "./build.ts"

const subject = ociSubject()
let driver: Driver
let temp: TempFolder
let images: Images

beforeAll(async () => {
  driver = await subject.open()
  temp = await TempFolder.make()
  images = await Images.open({ root: temp.at("images"), log: silentLog })
  const tree = busyboxTree(
    folder("old/"),
    file("old/a", "a"),
    file("old/b", "b"),
    folder("real/"),
    symlink("link", "real"),
  )
  writeFileSync(temp.at("base.tar"), writeTar(tree))
  await images.import(temp.at("base.tar"), { name: "base" })
  mkdirSync(temp.at("context/folder/sub"), { recursive: true })
  writeFileSync(temp.at("context/hello"), "hello\n")
  writeFileSync(temp.at("context/folder/sub/inner"), "inner\n")
  symlinkSync("/etc/passwd", temp.at("context/passwd"))
  symlinkSync("/etc", temp.at("context/etc"))
})
afterAll(async () => {
  await images[Symbol.asyncDispose]()
  await driver[Symbol.asyncDispose]()
  await temp[Symbol.asyncDispose]()
})

async function made(recipe: string, more: Partial<BuildOptions> = {}): Promise<{ id: string; steps: string[] }> {
  const steps: string[] = []
  const progress = (event: ImageEvent): void => {
    if (event.kind === "step") steps.push(`${event.text.split(" ")[0]} ${event.isCached ? "cached" : "made"}`)
  }
  const id = await build({
    images,
    driver,
    context: temp.at("context"),
    name: "built",
    recipe,
    progress,
    ...more,
  })
  return { id, steps }
}

async function look(name: string, command: string): Promise<string> {
  const spec = specOf(await images.use(name, "test"))
  await driver.create(spec, never)
  try {
    return await text(await driver.start(spec.id, never), command, { cwd: images.inspect(name).workdir })
  } finally {
    await driver.destroy(spec.id)
    images.release("test")
  }
}

const recipe = `
ARG GREETING=hi
FROM base
ENV WHO=world
WORKDIR /srv/app
COPY hello ./
COPY --chown=1000 folder /link/here
RUN echo "$GREETING $WHO" > greeting && rm /old/a && rm -rf /real/nothing && cp hello copy
RUN rm -rf /old && mkdir /old && echo new > /old/new
USER 1000
RUN ["sh", "-c", "id -u > /tmp/x; id -u > /workspace/me"]
CMD ["cat", "greeting"]
`

describe("a recipe", () => {
  test("is built in sandboxes, layer by layer, and starts", async () => {
    const { id, steps } = await made(recipe)
    expect(steps.every((step) => !/^(?:RUN|COPY|WORKDIR) cached/.test(step))).toBe(true)
    expect(images.inspect("built")).toMatchObject({
      id,
      env: ["WHO=world"],
      workdir: "/srv/app",
      user: "1000",
      command: ["cat", "greeting"],
    })
    const seen = await look(
      "built",
      "cat greeting copy /workspace/me; ls /old; cat /real/here/sub/inner; stat -c %u /real/here/sub/inner",
    )
    expect(seen).toBe("hi world\nhello\n1000\nnew\ninner\n1000\n")
    expect(await look("built", "ls -A /tmp /run/warren")).toBe("/run/warren:\ninit\nsudo.sock\n\n/tmp:\n")
    expect(await look("built", "test -L /link && echo still a link")).toBe("still a link\n")
  })

  test("again nothing is made; a change makes everything after it again", async () => {
    const first = await made(recipe)
    expect(first.steps.filter((step) => step.endsWith("made"))).toEqual(["FROM made"])
    const other = await made(recipe, { args: { GREETING: "hey" }, name: "other" })
    expect(other.steps.filter((step) => step.endsWith("made"))).toEqual([
      "FROM made",
      "RUN made",
      "RUN made",
      "RUN made",
    ])
    expect(await look("other", "cat /srv/app/greeting")).toBe("hey world\n")
    writeFileSync(temp.at("context/hello"), "changed\n")
    const changed = await made(recipe)
    expect(changed.steps.filter((step) => step.endsWith("made")).length).toBeGreaterThan(4)
    expect(await look("built", "cat /srv/app/copy")).toBe("changed\n")
  })

  test("a step that fails says its line and what it said, and leaves no sandbox", async () => {
    await expect(made("FROM base\nRUN true\nRUN echo oh no >&2; false")).rejects.toMatchObject({
      code: "invalid",
      message: "line 3 of the recipe (RUN) ended with 1",
      hint: "oh no\n",
    })
    expect(readdirSync(join(subject.root, "volume")).filter((name) => name.startsWith("sbx_"))).toEqual([])
    expect(readdirSync(temp.at("images/drafts"))).toEqual([])
  })

  test("what a step took away or made opaque stays so, hard links stay links", async () => {
    await made(`FROM base
RUN rm -rf /old && mkdir /old && touch /old/z && echo x > /real/one && busybox ln /real/one /real/two
RUN rm -rf /old/z && rm /real/one`)
    expect(await look("built", "ls -A /old; ls /real; cat /real/two")).toBe("two\nx\n")
  })

  test.each(["../base.tar /x", "etc/passwd /x", "nothing /x", "/etc/passwd /x", "hello"])(
    "COPY takes nothing from outside its context: %s",
    async (text) => {
      await expect(made(`FROM base\nCOPY ${text}`)).rejects.toMatchObject({ code: "invalid" })
    },
  )

  test("a link in the context is copied as a link", async () => {
    await made("FROM base\nCOPY passwd /copied")
    expect(await look("built", "stat -c %F /copied; cat /copied | wc -l")).toBe("symbolic link\n3\n")
  })

  test("a recipe that is cancelled stops with the reason", async () => {
    const stop = new AbortController()
    const reason = new Error("enough")
    const progress = (event: ImageEvent): void => void (event.kind === "output" && stop.abort(reason))
    await expect(made("FROM base\nRUN echo go; sleep 100", { progress, signal: stop.signal })).rejects.toBe(reason)
    expect(readdirSync(join(subject.root, "volume")).filter((name) => name.startsWith("sbx_"))).toEqual([])
  })
})
