import { Fault } from "@warren/base/fault.ts"
import { TokenScope } from "@warren/protocol/token-scope.ts"
import { flag } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { askControl } from "../control/control.ts"
import { table } from "../terminal/table.ts"
import { ageText } from "../terminal/units.ts"
import { verb } from "../verb.ts"

const create = verb({
  name: "token create",
  group: "Warren itself",
  doc: "Make a token for a program. It is told once.",
  examples: [
    "warren token create --name ci --scope sessions:write --scope exec --expires 30d",
    "warren token create --prefix ci- --sessions 4 --json",
    "warren token create --e2b --json",
  ],
  flags: {
    scope: flag.list("SCOPE", "What it may do, many times; everything but managing accounts unless said."),
    name: flag.text("NAME", "A word to tell it apart by."),
    e2b: flag.on("In the form that clients of E2B insist on."),
    expires: flag.duration("How long it counts; for ever unless said"),
    prefix: flag.text("TEXT", "Only sessions whose names begin so."),
    sessions: flag.whole("COUNT", "How many sessions there may be when it makes one.", { min: 0, max: 100_000 }),
  },
  words: {},
  async run({ flags }, desk) {
    const { name: label, expires: lifeMs, prefix: namePrefix, sessions: sessionsMax } = flags
    const made = await askControl(desk, "token.create", {
      ...(label === undefined ? {} : { label }),
      ...(flags.scope.length === 0 ? {} : { scopes: flags.scope.map(scopeOf) }),
      ...(lifeMs === undefined ? {} : { lifeMs }),
      ...(flags.e2b ? { form: "e2b" as const } : {}),
      limits: {
        ...(namePrefix === undefined ? {} : { namePrefix }),
        ...(sessionsMax === undefined ? {} : { sessionsMax }),
      },
    })
    await desk.output.show({ token: made.token, ...made.about }, () => made.token)
    desk.output.note(`Keep it: it is not told again. To end it: warren token rm ${made.about.id}`)
  },
})

const ls = verb({
  name: "token ls",
  group: "Warren itself",
  doc: "List your tokens. The tokens themselves are never told again.",
  examples: ["warren token ls"],
  flags: {},
  words: {},
  async run(_, desk) {
    const { items } = await askControl(desk, "token.list", {})
    await desk.output.show(items, () =>
      table(
        ["ID", "NAME", "AGE", "USED", "EXPIRES", "SCOPES"],
        items.map((one) => [
          one.id,
          one.label,
          ageText(one.createdAt),
          one.usedAt ? ageText(one.usedAt) : "never",
          one.expiresAt ?? "never",
          one.scopes.join(" "),
        ]),
      ),
    )
  },
})

const rm = verb({
  name: "token rm",
  group: "Warren itself",
  doc: "End a token, at once.",
  examples: ["warren token rm tok_0123456789abcdefghjk"],
  flags: {},
  words: { id: word.one("ID", "Of the token, as `warren token ls` shows it.") },
  async run({ words }, desk) {
    await askControl(desk, "token.revoke", { id: words.id })
    await desk.output.show({ id: words.id, isDeleted: true }, () => `${words.id} counts no more.`)
  },
})

export const tokenVerbs = [create, ls, rm]

function scopeOf(given: string): TokenScope {
  const scope = TokenScope.safeParse(given)
  if (scope.success) return scope.data
  throw new Fault("invalid", `there is no scope "${given}"`, { hint: `there is: ${TokenScope.options.join(", ")}` })
}
