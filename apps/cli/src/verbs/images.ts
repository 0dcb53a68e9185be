import { word } from "../arguments/word.ts"
import { withRunner } from "../desk.ts"
import { familiarName } from "../terminal/image-name.ts"
import { record, table } from "../terminal/table.ts"
import { ageText, bytesText } from "../terminal/units.ts"
import { verb } from "../verb.ts"
import { imageSourceVerbs } from "./image-sources.ts"

const image = word.one("IMAGE", "Its name or id.", { completes: "image" })

const ls = verb({
  name: "images ls",
  group: "Images",
  doc: "The images there are.",
  examples: ["warren images ls"],
  flags: {},
  words: {},
  async run(_, desk) {
    const { items } = await withRunner(desk, (runner) => runner.call("image.list", {}))
    await desk.output.show(items, () =>
      table(
        ["NAME", "SIZE", "AGE", "ID"],
        items.map(({ id, names, bytes, madeAt, isBuiltIn }) => [
          names.map(familiarName).join(", ") || "-",
          isBuiltIn ? "built in" : bytesText(bytes),
          isBuiltIn ? "-" : ageText(madeAt),
          id.replace(/^sha256:/, "").slice(0, 12),
        ]),
      ),
    )
  },
})

const inspect = verb({
  name: "images inspect",
  group: "Images",
  doc: "What an image is made of.",
  examples: ["warren images inspect debian:12"],
  flags: {},
  words: { image },
  async run({ words }, desk) {
    const found = await withRunner(desk, (runner) => runner.call("image.inspect", { name: words.image }))
    await desk.output.show(found, () =>
      [
        record({
          names: found.names.map(familiarName).join(", ") || "-",
          id: found.id,
          made: found.madeAt,
          size: bytesText(found.bytes),
          platform: found.platform,
          user: found.user || "-",
          folder: found.workdir || "/",
          command: found.command.join(" ") || "-",
          variables: found.env.map((each) => each.split("=")[0]).join(", ") || "-",
          "used by": found.usedBy.join(", ") || "-",
        }),
        table(
          ["LAYER", "SIZE", "FILES"],
          found.layers.map(({ digest, bytes, entries }) => [digest, bytesText(bytes), String(entries)]),
        ),
      ].join("\n\n"),
    )
  },
})

const tag = verb({
  name: "images tag",
  group: "Images",
  doc: "Give an image one more name.",
  examples: ["warren images tag debian:12 base"],
  flags: {},
  words: { image, name: word.one("NAME", "The new name.") },
  async run({ words }, desk) {
    const answer = await withRunner(desk, (runner) => runner.call("image.tag", { from: words.image, to: words.name }))
    await desk.output.show(answer, () => words.name)
  },
})

const rm = verb({
  name: "images rm",
  group: "Images",
  doc: "Take names away; an image goes with its last one.",
  examples: ["warren images rm debian:12"],
  flags: {},
  words: { images: word.some("IMAGE", "Names of images.", { completes: "image" }) },
  run: ({ words }, desk) =>
    withRunner(desk, async (runner) => {
      for (const name of words.images) {
        await runner.call("image.delete", { name })
        await desk.output.show({ deleted: name }, () => name)
      }
    }),
})

const gc = verb({
  name: "images gc",
  group: "Images",
  doc: "Remove images, layers and downloads that nobody uses.",
  examples: ["warren images gc"],
  flags: {},
  words: {},
  async run(_, desk) {
    const freed = await withRunner(desk, (runner) => runner.call("image.gc", {}))
    await desk.output.show(freed, () => `${freed.images} images, ${freed.layers} layers, ${freed.blobs} downloads`)
  },
})

const commit = verb({
  name: "images commit",
  group: "Images",
  doc: "Make an image of what a session has written.",
  examples: ["warren images commit my-session tools:1"],
  flags: {},
  words: {
    session: word.one("SESSION", "Id or name of the session.", { completes: "session" }),
    name: word.one("NAME", "The name of the image."),
  },
  async run({ words }, desk) {
    using progress = desk.output.progress()
    progress.say(`Making an image of ${words.session} …`)
    const made = await withRunner(desk, (runner) => runner.call("image.commit", words))
    progress[Symbol.dispose]()
    await desk.output.show(made, () => made.id)
  },
})

export const imageVerbs = [ls, ...imageSourceVerbs, inspect, tag, rm, gc, commit]
