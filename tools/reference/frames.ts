import { describeWires } from "@warren/protocol/wires.ts"
import { code, page, table } from "./markdown.ts"
import { limitsOf, typeOf, type Schema } from "./schema.ts"

interface Wires {
  readonly frames: {
    readonly limits: Readonly<Record<string, number>>
    readonly tags: Readonly<Record<string, number>>
  }
  readonly rpc: {
    readonly version: number
    readonly limits: Readonly<Record<string, number>>
    readonly messages: Readonly<Record<string, Schema>>
  }
}

/** The bytes between processes, and the messages of the rpc in them. */
export function framesPage(): string {
  const { frames, rpc } = describeWires() as unknown as Wires
  return page("Frames and rpc", "packages/base/src/frame.ts and packages/protocol/src/rpc/wire.ts", [
    "A frame is a length (`u32`, big-endian, at least 1) and a body of that many bytes. A body that begins with `{` is one " +
      "JSON object in UTF-8. Any other first byte is a stream tag, and the rest is raw bytes.",
    "## Stream tags",
    numbers("tag", "byte", frames.tags),
    "## Limits of a frame",
    numbers("limit", "value", frames.limits),
    "## Messages of the rpc",
    `Version ${rpc.version}. The asking side says \`hello\` first and waits for \`welcome\`. Then it sends requests, each with ` +
      "a number of its own; what comes back carries that number. Number 0 is the connection itself.",
    table(
      ["message", "fields"],
      Object.entries(rpc.messages).map(([name, schema]) => [name, code(typeOf(schema, (type) => type))]),
    ),
    "## Limits of the rpc",
    numbers("limit", "value", rpc.limits),
    "## Limits of the fields",
    table(
      ["message", "field", "limits"],
      Object.entries(rpc.messages).flatMap(([name, schema]) => bounded(name, "", schema)),
    ),
  ])
}

function numbers(name: string, value: string, values: Readonly<Record<string, number>>): string {
  return table(
    [name, value],
    Object.entries(values).map(([key, number]) => [code(key), String(number)]),
  )
}

function bounded(message: string, path: string, schema: Schema): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const limits = limitsOf(field)
    const own = limits === "" ? [] : [[message, code(`${path}${name}`), limits]]
    return [...own, ...bounded(message, `${path}${name}.`, field)]
  })
}
