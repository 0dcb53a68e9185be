import { Fault } from "@warren/base/fault.ts"
import { safeFunctions, safeModules } from "./safe-names.ts"
import { tokensOf, type Token } from "./tokens.ts"

export type Purpose = "query" | "execute"

/** Everything this SQLite can be asked by name. */
export interface Vocabulary {
  readonly functions: ReadonlySet<string>
  readonly modules: ReadonlySet<string>
}

const readingVerbs = ["select", "values", "with", "explain"]
/** Not here: ATTACH and VACUUM reach other files, PRAGMA takes our limits away, and a transaction is one call's own. */
const verbs: Readonly<Record<Purpose, ReadonlySet<string>>> = {
  query: new Set(readingVerbs),
  execute: new Set([
    ...readingVerbs,
    "insert",
    "replace",
    "update",
    "delete",
    "create",
    "alter",
    "drop",
    "reindex",
    "analyze",
  ]),
}

/**
 * Refuses what must not reach SQLite, before it does: more than one statement, verbs that are not for this purpose, and names that
 * are not known to be harmless. What is only wrong is left to SQLite, whose messages are better.
 */
export function checkStatement(sql: string, purpose: Purpose, parameters: number, vocabulary: Vocabulary): void {
  if (sql.includes("\0")) throw new Fault("invalid", "a statement cannot contain NUL")
  const tokens = tokensOf(sql)
  checkVerb(tokens, purpose)
  checkOne(tokens)
  checkNames(tokens, vocabulary)
  checkParameters(tokens, parameters)
}

function checkVerb(tokens: readonly Token[], purpose: Purpose): void {
  const [first, ...rest] = tokens
  if (!first) throw new Fault("invalid", "there is no statement")
  const verb = first.kind === "name" && !first.isQuoted ? first.value : ""
  if (!verbs[purpose].has(verb)) {
    const isForOther = verbs.execute.has(verb)
    throw new Fault(
      isForOther ? "forbidden" : "invalid",
      `a statement for db.${purpose} cannot begin with ${shown(first)}`,
      {
        hint: isForOther ? "use db.execute" : `it begins with ${[...verbs[purpose]].join(", ").toUpperCase()}`,
      },
    )
  }
  // Some statements already act while they are only being explained.
  if (verb === "explain") checkVerb(isWord(rest[0], "query") && isWord(rest[1], "plan") ? rest.slice(2) : rest, purpose)
  const isTemporary = verb === "create" && (isWord(rest[0], "temp") || isWord(rest[0], "temporary"))
  if (isTemporary)
    throw new Fault("invalid", "nothing lives longer than a call but what is in the database", {
      hint: "leave out TEMP",
    })
}

/** A trigger's body is the only place for a `;` inside of a statement; it ends with `; END ;`. */
function checkOne(tokens: readonly Token[]): void {
  const isTrigger = isWord(tokens[0], "create") && isWord(tokens[1], "trigger")
  const isBodyEnd = (at: number): boolean => isWord(tokens[at - 1], "end") && isMark(tokens[at - 2], ";")
  const end = tokens.findIndex((token, at) => isMark(token, ";") && (!isTrigger || isBodyEnd(at)))
  const isAlone = end < 0 || tokens.slice(end).every((token) => isMark(token, ";"))
  if (!isAlone) throw new Fault("invalid", "there is more than one statement", { hint: "make one call for each" })
}

function checkNames(tokens: readonly Token[], { functions, modules }: Vocabulary): void {
  tokens.forEach((token, at) => {
    if (token.kind !== "name" && token.kind !== "text") return
    const name = token.value.toLowerCase()
    const isCall = token.kind === "name" && isMark(tokens[at + 1], "(")
    const isUnsafeCall = isCall && functions.has(name) && !safeFunctions.has(name)
    const isUnsafeModule = (modules.has(name) || name.startsWith("pragma_")) && !safeModules.has(name)
    if (!isUnsafeCall && !isUnsafeModule) return
    throw new Fault("forbidden", `${shown(token)} cannot be used here`, {
      hint: token.kind === "text" ? "bind it as a parameter" : "it reaches beyond the database",
    })
  })
}

function checkParameters(tokens: readonly Token[], given: number): void {
  const asked = tokens.filter(({ kind }) => kind === "parameter")
  const other = asked.find(({ value }) => value !== "?")
  if (other) throw new Fault("invalid", `parameters are written as ?, not as ${other.value}`)
  if (asked.length !== given)
    throw new Fault("invalid", `the statement has ${asked.length} parameters, and ${given} were given`)
}

function isWord(token: Token | undefined, word: string): boolean {
  return token?.kind === "name" && !token.isQuoted && token.value === word
}

function isMark(token: Token | undefined, mark: string): boolean {
  return token?.kind === "mark" && token.value === mark
}

const shownCharsMax = 40

function shown(token: Token): string {
  return token.isQuoted ? `"${token.value.slice(0, shownCharsMax)}"` : token.value.slice(0, shownCharsMax).toUpperCase()
}
