import { parseAst } from "rolldown/parseAst"

/** One import, as it is written. */
export interface Import {
  /** Undefined when it is computed: nobody can say then where it leads. */
  readonly specifier: string | undefined
  /** Gone before anything runs. */
  readonly isTypeOnly: boolean
}

export interface Module {
  readonly imports: readonly Import[]
  /** There is something in it, and all of it is somebody else's. */
  readonly onlyReexports: boolean
}

type Node = Readonly<Record<string, unknown>> & { readonly type: string }

/** Reads a module with the parser the bundler uses, so that what it says is what will be bundled. */
export function readModule(path: string, source: string): Module {
  const { body } = parseAst(source, { lang: path.endsWith("x") ? "tsx" : "ts" }, path) as unknown as { body: Node[] }
  const imports: Import[] = []
  for (const statement of body) collect(statement, imports)
  const isReexport = (node: Node): boolean => node.type.startsWith("Export") && isNode(node["source"])
  return { imports, onlyReexports: body.length > 0 && body.every(isReexport) }
}

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && "type" in value

/** Every kind of node that names another module; all of them keep the name in `source`. */
const kinds = new Set([
  "ImportDeclaration",
  "ExportNamedDeclaration",
  "ExportAllDeclaration",
  "ImportExpression",
  "TSImportType",
])

function collect(node: Node, imports: Import[]): void {
  const { source } = node
  if (kinds.has(node.type) && isNode(source)) {
    const specifier = source.type === "Literal" && typeof source["value"] === "string" ? source["value"] : undefined
    imports.push({ specifier, isTypeOnly: isTypeOnly(node) })
  }
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) collect(child, imports)
  }
}

function isTypeOnly(node: Node): boolean {
  return node.type === "TSImportType" || node["importKind"] === "type" || node["exportKind"] === "type"
}
