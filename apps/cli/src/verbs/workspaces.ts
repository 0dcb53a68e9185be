import { flag } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { withRunner } from "../desk.ts"
import { allPages } from "../runner/pages.ts"
import { table } from "../terminal/table.ts"
import { ageText, bytesText } from "../terminal/units.ts"
import { verb } from "../verb.ts"
import { given } from "./wishes.ts"

const name = word.one("NAME", "The name of the workspace.", { completes: "workspace" })
const path = word.one("PATH", "From the top of the workspace.")

const ls = verb({
  name: "workspaces ls",
  group: "Files and data",
  doc: "List workspaces by name, with their sizes as last measured.",
  examples: ["warren workspaces ls"],
  flags: {},
  words: {},
  async run(_, desk) {
    const found = await withRunner(desk, (runner) => allPages((page) => runner.call("workspace.list", page)))
    await desk.output.show(found, () =>
      table(
        ["NAME", "USED", "LIMIT", "AGE", "SESSIONS"],
        found.map(({ name: each, usedBytes, limitBytes, createdAt, holders }) => [
          each,
          usedBytes === undefined ? "?" : bytesText(usedBytes),
          limitBytes === 0 ? "none" : bytesText(limitBytes),
          ageText(createdAt),
          holders.join(",") || "-",
        ]),
      ),
    )
  },
})

const create = verb({
  name: "workspaces create",
  group: "Files and data",
  doc: "Make a workspace: a named folder that outlives sessions.",
  examples: ["warren workspaces create website --limit 5g"],
  flags: { limit: flag.size("How much it may hold; 0 asks for no limit") },
  words: { name },
  async run({ flags, words }, desk) {
    const input = { name: words.name, ...given({ limitBytes: flags.limit }) }
    const made = await withRunner(desk, (runner) => runner.call("workspace.create", input))
    await desk.output.show(made, () => made.name)
  },
})

const usage = verb({
  name: "workspaces usage",
  group: "Files and data",
  doc: "Measure a workspace now.",
  examples: ["warren workspaces usage website"],
  flags: {},
  words: { name },
  async run({ words }, desk) {
    const found = await withRunner(desk, (runner) => runner.call("workspace.usage", { name: words.name }))
    await desk.output.show(found, () => bytesText(found.usedBytes ?? 0))
  },
})

const rm = verb({
  name: "workspaces rm",
  group: "Files and data",
  doc: "Delete a workspace with everything in it.",
  examples: ["warren workspaces rm website"],
  flags: { force: flag.on("Even while a session has it.", { short: "f" }) },
  words: { name },
  async run({ flags, words }, desk) {
    const input = { name: words.name, force: flags.force }
    const answer = await withRunner(desk, (runner) => runner.call("workspace.delete", input))
    await desk.output.show(answer, () => `${words.name} is deleted.`)
  },
})

const kinds = { file: "-", folder: "d", link: "l", other: "?" } as const

const files = verb({
  name: "workspaces files",
  group: "Files and data",
  doc: "What lies in a folder of a workspace, whether or not a session has it. (`warren cp` brings files in and out: @NAME:PATH.)",
  examples: ["warren workspaces files website src"],
  flags: {},
  words: { name, path: word.optional("PATH", "A folder; the top of the workspace when absent.") },
  async run({ words }, desk) {
    const input = { name: words.name, ...given({ path: words.path }) }
    const found = await withRunner(desk, (runner) =>
      allPages((page) => runner.call("workspace.files", { ...page, ...input })),
    )
    await desk.output.show(found, () =>
      table(
        ["KIND", "MODE", "SIZE", "AGE", "NAME"],
        found.map(({ kind, mode, sizeBytes, modifiedAt, name: each, target }) => [
          kinds[kind],
          (mode & 0o7777).toString(8).padStart(4, "0"),
          bytesText(sizeBytes),
          ageText(modifiedAt),
          target === undefined ? each : `${each} -> ${target}`,
        ]),
      ),
    )
  },
})

const mkdir = verb({
  name: "workspaces mkdir",
  group: "Files and data",
  doc: "Make a folder in a workspace, and those above it that are missing.",
  examples: ["warren workspaces mkdir website src/pages"],
  flags: {},
  words: { name, path },
  async run({ words }, desk) {
    const made = await withRunner(desk, (runner) =>
      runner.call("workspace.mkdir", { name: words.name, path: words.path }),
    )
    await desk.output.show(made, () => made.path)
  },
})

const mv = verb({
  name: "workspaces mv",
  group: "Files and data",
  doc: "Move a file, folder or link within a workspace.",
  examples: ["warren workspaces mv website draft.md notes.md"],
  flags: { replace: flag.on("Even over what is there.", { short: "f" }) },
  words: { name, from: word.one("FROM", "What."), to: word.one("TO", "Where to.") },
  async run({ flags, words }, desk) {
    const input = { name: words.name, from: words.from, to: words.to, replace: flags.replace }
    const moved = await withRunner(desk, (runner) => runner.call("workspace.move", input))
    await desk.output.show(moved, () => moved.path)
  },
})

const remove = verb({
  name: "workspaces remove",
  group: "Files and data",
  doc: "Remove a file or link of a workspace, or with --recursive a folder.",
  examples: ["warren workspaces remove website old.log", "warren workspaces remove website dist --recursive"],
  flags: { recursive: flag.on("A folder with everything in it.", { short: "r" }) },
  words: { name, path },
  async run({ flags, words }, desk) {
    const input = { name: words.name, path: words.path, recursive: flags.recursive }
    const answer = await withRunner(desk, (runner) => runner.call("workspace.remove", input))
    await desk.output.show(answer, () => `${words.path} is removed.`)
  },
})

export const workspaceVerbs = [ls, create, usage, rm, files, mkdir, mv, remove]
