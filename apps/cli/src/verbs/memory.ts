import { Fault } from "@warren/base/fault.ts"
import { flag } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { withRunner } from "../desk.ts"
import { allPages } from "../runner/pages.ts"
import { table } from "../terminal/table.ts"
import { ageText } from "../terminal/units.ts"
import { verb } from "../verb.ts"
import { given } from "./wishes.ts"

const id = word.one("ID", "Its id, as `warren memory ls` shows it.")
const tag = flag.text("TAG", "Only those with this tag.")

const add = verb({
  name: "memory add",
  group: "Files and data",
  doc: "Remember a text beyond one session.",
  examples: ["warren memory add 'The staging database is read-only' --tag project:website"],
  flags: { tag: flag.list("TAG", "A word to find it by."), source: flag.text("TEXT", "Who or what it came from.") },
  words: { text: word.some("TEXT", "What to remember.") },
  async run({ flags, words }, desk) {
    const input = { text: words.text.join(" "), tags: [...flags.tag], ...given({ source: flags.source }) }
    const memory = await withRunner(desk, (runner) => runner.call("memory.add", input))
    await desk.output.show(memory, () => memory.id)
  },
})

const ls = verb({
  name: "memory ls",
  group: "Files and data",
  doc: "List memories, the newest first.",
  examples: ["warren memory ls --tag project:website"],
  flags: { tag },
  words: {},
  async run({ flags }, desk) {
    const found = await withRunner(desk, (runner) =>
      allPages((page) => runner.call("memory.list", { ...page, ...given({ tag: flags.tag }) })),
    )
    await desk.output.show(found, () =>
      table(
        ["ID", "AGE", "TAGS", "TEXT"],
        found.map((memory) => [memory.id, ageText(memory.createdAt), memory.tags.join(",") || "-", memory.text]),
      ),
    )
  },
})

const search = verb({
  name: "memory search",
  group: "Files and data",
  doc: "Find memories by words, by meaning, or by both.",
  examples: ["warren memory search staging database", "warren memory search --mode text staging"],
  flags: {
    mode: flag.choice(["text", "vector", "hybrid"], "By words, by meaning, or by both."),
    tag,
    limit: flag.whole("COUNT", "How many at most (20).", { min: 1, max: 100 }),
  },
  words: { query: word.some("QUERY", "What to look for.") },
  async run({ flags, words }, desk) {
    const input = { query: words.query.join(" "), ...given({ mode: flags.mode, tag: flags.tag, limit: flags.limit }) }
    const found = await withRunner(desk, (runner) => runner.call("memory.search", input))
    if (found.degraded) desk.output.note(`Only by ${found.mode}: ${found.degraded.detail}`)
    await desk.output.show(found, () =>
      table(
        ["ID", "SCORE", "TEXT"],
        found.items.map(({ memory, score, snippet }) => [memory.id, score.toFixed(3), snippet]),
      ),
    )
  },
})

const get = verb({
  name: "memory get",
  group: "Files and data",
  doc: "Read one memory.",
  examples: ["warren memory get mem_4k2m8q0s6t1v3w5x7y9z"],
  flags: {},
  words: { id },
  async run({ words }, desk) {
    const memory = await withRunner(desk, (runner) => runner.call("memory.get", { id: words.id }))
    await desk.output.show(memory, () => memory.text)
  },
})

const rm = verb({
  name: "memory rm",
  group: "Files and data",
  doc: "Forget a memory.",
  examples: ["warren memory rm mem_4k2m8q0s6t1v3w5x7y9z"],
  flags: {},
  words: { id },
  async run({ words }, desk) {
    const answer = await withRunner(desk, (runner) => runner.call("memory.delete", { id: words.id }))
    if (!answer.isDeleted) throw new Fault("not_found", `there is no memory "${words.id}"`)
    await desk.output.show(answer, () => `${words.id} is forgotten.`)
  },
})

export const memoryVerbs = [add, ls, search, get, rm]
