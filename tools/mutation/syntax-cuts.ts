import { parseAst } from "rolldown/parseAst"

/** One defence less in the text of a file. */
export interface Cut {
  readonly line: number
  /** What was taken out. */
  readonly what: string
  readonly text: string
}

/** A node of the syntax tree, as far as it is looked at here. */
interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

interface Change {
  readonly start: number
  readonly end: number
  readonly by: string
  readonly what: string
}

/** What is a defence by the shape of the code, whatever it is about. */
export const shapes = {
  /** `if (…) throw …`: never met. */
  checks: (node: Node, text: string) => (node.type === "IfStatement" && ends(node, ["Throw"]) ? never(node, text) : []),
  /** `if (…) return …`, and `continue`: never met. */
  returns: (node: Node, text: string) =>
    node.type === "IfStatement" && ends(node, ["Return", "Continue"]) ? never(node, text) : [],
  /** One of several conditions. */
  operands: (node: Node, text: string, parent: Node | undefined) =>
    isChain(node) && !isChain(parent, node["operator"]) && parent?.type !== "SpreadElement"
      ? operandsOf(node, text)
      : [],
  /** `checkX(…)` and its like, for what they throw. */
  calls: (node: Node, text: string) => (isCheckingCall(node) ? [change(node, ";", lineOf(node, text))] : []),
  /** What lets some of many through. */
  filters: (node: Node, text: string) => filterOf(node, text),
  /** An attribute of a cookie or a directive of a policy: what is between semicolons. */
  pieces: (node: Node, text: string, parent: Node | undefined) => piecesOf(node, text, parent),
  /** A header that browsers obey, by another name. */
  names: (node: Node, text: string) => headerOf(node, text),
} as const satisfies Record<string, (node: Node, text: string, parent: Node | undefined) => readonly Change[]>

export type Shape = keyof typeof shapes

/** The text with one of them less, each. */
export function syntaxCuts(text: string, kinds: readonly Shape[]): readonly Cut[] {
  if (kinds.length === 0) return []
  const found: Change[] = []
  const walk = (node: Node, parent: Node | undefined): void => {
    for (const kind of kinds) found.push(...shapes[kind](node, text, parent))
    for (const child of childrenOf(node)) walk(child, node)
  }
  walk(treeOf(text), undefined)
  return found.map(({ start, end, by, what }) => ({
    line: text.slice(0, start).split("\n").length,
    what,
    text: text.slice(0, start) + by + text.slice(end),
  }))
}

/** Throws when it is not TypeScript: what does not even load is missed by everybody, and proves nothing. */
export function treeOf(text: string): Node {
  return parseAst(text, { lang: "ts" }) as unknown as Node
}

function childrenOf(node: Node): readonly Node[] {
  return Object.values(node).flatMap((value) =>
    Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : [],
  )
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string" && "start" in value
}

function change({ start, end }: Pick<Node, "start" | "end">, by: string, what: string): Change {
  return { start, end, by, what: what.replaceAll(/\s+/g, " ").trim().slice(0, 160) }
}

function lineOf({ start, end }: Pick<Node, "start" | "end">, text: string): string {
  return text.slice(start, end)
}

/** How the branch ends: its last statement. */
function ends({ consequent }: Node, how: readonly string[]): boolean {
  const branch = consequent as Node
  const last = branch.type === "BlockStatement" ? (branch["body"] as Node[]).at(-1) : branch
  return how.some((one) => last?.type === `${one}Statement`)
}

function never(node: Node, text: string): readonly Change[] {
  return [change(node["test"] as Node, "false", lineOf(node, text))]
}

function isChain(node: Node | undefined, operator = node?.["operator"]): boolean {
  return node?.type === "LogicalExpression" && node["operator"] === operator && operator !== "??"
}

function operandsOf(node: Node, text: string): readonly Change[] {
  const all = flat(node, node["operator"])
  const operator = ` ${String(node["operator"])} `
  return all.map((one) => {
    const others = all.filter((other) => other !== one).map((other) => `(${lineOf(other, text)})`)
    return change(node, `(${others.join(operator)})`, `${lineOf(one, text)} of ${lineOf(node, text)}`)
  })
}

function flat(node: Node, operator: unknown): readonly Node[] {
  if (!isChain(node, operator)) return [node]
  return [...flat(node["left"] as Node, operator), ...flat(node["right"] as Node, operator)]
}

function isCheckingCall(node: Node): boolean {
  if (node.type !== "ExpressionStatement") return false
  let call = node["expression"] as Node
  if (call.type === "AwaitExpression") call = call["argument"] as Node
  if (call.type !== "CallExpression") return false
  const callee = call["callee"] as Node
  const name = callee.type === "MemberExpression" ? (callee["property"] as Node)["name"] : callee["name"]
  return (
    typeof name === "string" && /^#?(?:check|guard|must|require|slow|admit|count|spend|delete|revoke|cut)/.test(name)
  )
}

function filterOf(node: Node, text: string): readonly Change[] {
  if (node.type !== "CallExpression") return []
  const callee = node["callee"] as Node
  if (callee.type !== "MemberExpression" || (callee["property"] as Node)["name"] !== "filter") return []
  const place = { start: (callee["object"] as Node).end, end: node.end }
  return [change(place, "", lineOf(place, text))]
}

function piecesOf(node: Node, text: string, parent: Node | undefined): readonly Change[] {
  const isPart = node.type === "TemplateElement" && parent !== undefined
  if (!isPart && !(node.type === "Literal" && typeof node["value"] === "string")) return []
  const whole = lineOf(node, text)
  if (!lineOf(isPart ? parent : node, text).includes("; ")) return []
  return [...whole.matchAll(/(?:^["`}]?|; )([^;"`${}]+)/g)].flatMap((match) => {
    const piece = match[1] ?? ""
    const start = node.start + match.index + (match[0].startsWith("; ") ? 0 : match[0].length - piece.length)
    const end = node.start + match.index + match[0].length
    return piece.trim() === "" ? [] : [change({ start, end }, "", `${piece} of ${whole}`)]
  })
}

const obeyed =
  /^(?:content-security-policy|x-content-type-options|referrer-policy|x-frame-options|cross-origin-[a-z]+-policy|permissions-policy|strict-transport-security|cache-control|connection)$/i

function headerOf(node: Node, text: string): readonly Change[] {
  if (node.type !== "Literal" || typeof node["value"] !== "string" || !obeyed.test(node["value"])) return []
  const line = text.slice(text.lastIndexOf("\n", node.start) + 1, text.indexOf("\n", node.start))
  return [change(node, '"x-nothing"', `${node["value"]} in ${line.trim()}`)]
}
