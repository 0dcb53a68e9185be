import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { flag, type Flags } from "./flag.ts"
import { meaningOf, takeApart } from "./parse.ts"
import { word, type Words } from "./word.ts"

const flags = {
  image: flag.text("IMAGE", "", { short: "i" }),
  allow: flag.list("HOST", ""),
  keep: flag.on("", { short: "k" }),
  memory: flag.size(""),
  maxAge: flag.duration(""),
  net: flag.choice(["none", "proxy"], ""),
  env: flag.environment(""),
  label: flag.pairs(""),
  count: flag.whole("N", "", { min: 1, max: 9 }),
  cpus: flag.number("N", "", { min: 0.5, max: 4 }),
}
const words = { session: word.one("SESSION", ""), command: word.command("") }

function read<F extends Flags, W extends Words>(syntax: { flags: F; words: W }, ...args: string[]) {
  return meaningOf(syntax, takeApart(syntax, args))
}

/** Text a person may write as a value: not what could be taken for a flag. */
const value = fc.string().filter((text) => !text.startsWith("-"))
const anyText = fc.string()

describe("the parser of arguments", () => {
  test("gives back what was written, in whatever order and form", () => {
    const written = fc.record({ image: value, allow: fc.array(value, { maxLength: 4 }), keep: fc.boolean() })
    const order = fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true }))
    fc.assert(
      fc.property(written, order, fc.boolean(), (given, keys, isJoined) => {
        const pieces = [
          isJoined ? [`--image=${given.image}`] : ["-i", given.image],
          ...given.allow.map((host) => (isJoined ? ["--allow", host] : [`--allow=${host}`])),
          ...(given.keep ? [["--keep"]] : []),
        ]
        const line = pieces.map((piece) => ({ piece, key: keys.next().value ?? 0 })).toSorted((a, b) => a.key - b.key)
        const { flags: found } = read({ flags, words: {} }, ...line.flatMap(({ piece }) => piece))
        expect({ ...found, allow: found.allow.toSorted() }).toMatchObject({
          ...given,
          allow: given.allow.toSorted(),
        })
      }),
    )
  })

  test("leaves somebody else's command line alone, behind -- and behind the first word of it", () => {
    fc.assert(
      fc.property(
        value.filter((text) => text !== ""),
        fc.array(anyText),
        fc.boolean(),
        (first, rest, isMarked) => {
          const command = [first, ...rest]
          const args = isMarked ? ["s", "--keep", "--", ...command] : ["--keep", "s", ...command]
          const found = read({ flags, words }, ...args)
          expect(found.words).toEqual({ session: "s", command })
          expect(found.flags.keep).toBe(true)
        },
      ),
    )
  })

  test("a command may begin with a dash behind --", () => {
    expect(read({ flags, words }, "s", "--", "--keep", "--").words.command).toEqual(["--keep", "--"])
  })

  test("never does anything but answer or refuse, and what it refuses it names", () => {
    const soup = fc.array(
      fc.oneof(anyText, fc.constantFrom("--image", "-i", "--keep", "--memory=5x", "-ik", "--", "-")),
    )
    fc.assert(
      fc.property(soup, (args) => {
        try {
          read({ flags, words }, ...args)
        } catch (thrown) {
          expect(thrown).toMatchObject({ name: "Fault", code: "invalid" })
        }
      }),
    )
  })

  test.each([
    [["--image"], "--image needs a value"],
    [["--image", "--keep"], "--image needs a value"],
    [["-i", "-k"], "-i needs a value"],
    [["--image", "a", "--image", "b"], "--image was given twice"],
    [["--keep=yes"], "--keep takes no value"],
    [["--imge", "x"], "there is no --imge here"],
    [["-x"], "there is no -x here"],
    [["--memory", "5x"], '--memory must be a size such as 512m or 2g, not "5x"'],
    [["--memory=-5"], '--memory must be a size such as 512m or 2g, not "-5"'],
    [["--max-age", "5"], '--max-age must be a time such as 90s, 10m or 2h, not "5"'],
    [["--net", "lan"], '--net must be one of none, proxy, not "lan"'],
    [["--count", "10"], '--count must be a whole number from 1 to 9, not "10"'],
    [["--count", "1.5"], '--count must be a whole number from 1 to 9, not "1.5"'],
    [["--cpus", "1e3"], '--cpus must be a number from 0.5 to 4, not "1e3"'],
    [["--label", "=x"], '--label must be NAME=VALUE, not "=x"'],
    [["--env", "A B=hunter2"], '--env: "A B" cannot be a variable\'s name'],
    [["one"], '"one" is one word too many'],
  ])("refuses %j", (args, message) => {
    expect(() => read({ flags, words: {} }, ...args)).toThrow(message)
  })

  test("does not repeat a variable's value when it complains", () => {
    expect(() => read({ flags, words: {} }, "-e", "1X=hunter2")).toThrow(/^((?!hunter2).)*$/)
  })

  test("suggests the flag that was meant", () => {
    expect(() => read({ flags, words: {} }, "--memroy", "1g")).toThrow(
      expect.objectContaining({ hint: "did you mean --memory?" }),
    )
  })

  test("words that need not be there leave what others need", () => {
    const cp = { from: word.some("FROM", ""), to: word.one("TO", "") }
    expect(read({ flags: {}, words: cp }, "a", "b", "c").words).toEqual({ from: ["a", "b"], to: "c" })
    expect(() => read({ flags: {}, words: cp }, "a")).toThrow("TO is missing")
    expect(() => read({ flags: {}, words: cp })).toThrow("FROM is missing")
  })
})
