import { describe, expect, test } from "vitest"
import { dashed } from "./arguments/parse.ts"
import { findVerb } from "./find-verb.ts"
import { overview, verbHelp } from "./help.ts"
import { commonFlags } from "./verb.ts"
import { verbs } from "./verbs.ts"

const colourless = { paint: (_: string, text: string) => text }
const shown = verbs.filter(({ name }) => !name.startsWith("_"))

/** The words of a line in a shell, as far as the examples need it: quotes, and everything up to a pipe or a redirection. */
function wordsOf(line: string): string[] {
  const own = line.split(/ [|<>] /).find((part) => part.trimStart().startsWith("warren ")) ?? ""
  const [, ...words] = own.match(/'[^']*'|"[^"]*"|\$\([^)]*\)|\S+/g) ?? []
  return words.map((word) => word.replace(/^(['"])(.*)\1$/, "$2"))
}

describe("the table of verbs", () => {
  test("has no name twice, and no letter twice in a verb", () => {
    expect(new Set(verbs.map(({ name }) => name)).size).toBe(verbs.length)
    for (const { flags } of verbs) {
      const letters = Object.values(flags).flatMap(({ short }) => short ?? [])
      expect(new Set(letters).size).toBe(letters.length)
    }
  })

  test.each(shown.map((verb) => [verb.name, verb] as const))(
    "%s has a help with its examples and every flag",
    (_, verb) => {
      const help = verbHelp(verb, colourless)
      for (const example of verb.examples) expect(help).toContain(example)
      for (const [key, { doc }] of Object.entries(verb.flags)) {
        expect(help).toContain(dashed(key))
        expect(doc).not.toBe("")
      }
      expect(help).toContain("--json")
      expect(overview(verbs, colourless)).toContain(verb.name)
    },
  )

  test.each(
    shown.flatMap(({ examples, name }) =>
      examples.filter((line) => line.includes("warren ")).map((line) => [name, line]),
    ),
  )("an example of %s can be read: %s", (name, line) => {
    const words = wordsOf(line.replace(/^eval "\$\((.*)\)"$/, "$1"))
    const found = findVerb(verbs, words)
    expect(line).toContain(`warren ${name}`)
    expect(() => found.verb?.prepare(found.args)).not.toThrow()
  })

  const flagsOfVerbs = verbs.flatMap((verb) => Object.entries(verb.flags).map(([key, each]) => ({ verb, key, each })))

  test.each(flagsOfVerbs.map((one) => [`${one.verb.name} ${dashed(one.key)}`, one] as const))(
    "%s refuses what it cannot mean, and names itself",
    (_, { verb, key, each }) => {
      const name = dashed(key)
      if (each.value === undefined) expect(() => verb.prepare([`${name}=x`])).toThrow(`${name} takes no value`)
      else {
        expect(() => verb.prepare([name])).toThrow(`${name} needs a value`)
        // What is text may be anything; everything else has something that it is not.
        const isText = /^[A-Z]+$/.test(each.value) && !["SIZE", "TIME", "COUNT", "PORT"].includes(each.value)
        const nonsense = () => each.read(["\u0000 no=nsense".replace("=", "")], name)
        if (!isText && !each.value.includes("[")) expect(nonsense).toThrow(name)
      }
      expect(() => verb.prepare([`${name}x-no-such-flag`])).toThrow(`there is no ${name}x-no-such-flag here`)
    },
  )

  test("common flags may stand before the verb", () => {
    const found = findVerb(verbs, ["--user", "alice", "--json", "start", "--daemon"])
    expect(found.verb?.name).toBe("start")
    expect(found.verb?.prepare(found.args).common).toMatchObject({ user: "alice", json: true })
    expect(() => findVerb(verbs, ["--daemon", "start"])).toThrow("there is no --daemon before a verb")
    expect(Object.keys(commonFlags)).toEqual(["json", "help", "config", "user"])
  })

  test.each([
    [["rnu"], "did you mean: warren run"],
    [["snapshto"], "did you mean: warren snapshot"],
    [["images", "pul"], "did you mean: warren images pull"],
    [["images"], "warren images ls --help"],
    [["qqqqqq"], "warren --help shows them all"],
  ])("%j is refused with a way on", (args, hint) => {
    expect(() => findVerb(verbs, args)).toThrow(expect.objectContaining({ code: "invalid", hint }))
  })

  test("help can be asked for in every way", () => {
    for (const args of [
      ["help", "run"],
      ["run", "--help"],
      ["run", "-h"],
    ]) {
      const found = findVerb(verbs, args)
      expect(found.verb?.name).toBe("run")
      expect(found.verb?.prepare(found.args).common.help).toBe(true)
    }
    expect(findVerb(verbs, ["run", "ls", "--help"]).verb?.prepare(["ls", "--help"]).common.help).toBe(false)
    expect(findVerb(verbs, ["--help"])).toMatchObject({ verb: undefined, isAsked: true })
    expect(findVerb(verbs, [])).toMatchObject({ verb: undefined, isAsked: false })
  })
})
