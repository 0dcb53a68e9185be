import { Fault } from "@warren/base/fault.ts"
import { describeIssues } from "@warren/protocol/issues.ts"
import type { CallToolResult, ToolAnnotations } from "@modelcontextprotocol/sdk/types.js"
import { z } from "zod"
import type { Asking } from "./asking.ts"
import { inputSchemaOf } from "./input-schema.ts"

/** What a tool works with. */
export interface Bench {
  readonly asking: Asking
  /** Tells a client that wants to know that it is still being worked on. */
  progress(message: string): void
  /** Where a path of the gateway is found; undefined where nobody has said. */
  urlOf(path: string): string | undefined
}

interface Definition<In extends z.ZodObject> {
  readonly name: string
  readonly title: string
  readonly doc: string
  readonly in: In
  /** What it does to the world, for a client that asks its user first. */
  readonly kind: keyof typeof kinds
  run(input: z.output<In>, bench: Bench): Promise<CallToolResult>
}

export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: { readonly type: "object" }
  readonly annotations: ToolAnnotations
  run(given: unknown, bench: Bench): Promise<CallToolResult>
}

const kinds = {
  reads: { readOnlyHint: true },
  makes: { readOnlyHint: false, destructiveHint: false },
  changes: { readOnlyHint: false, destructiveHint: true },
  /** What runs inside may do whatever the session is allowed to, also reach others. */
  runs: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
} as const satisfies Record<string, ToolAnnotations>

/** A tool as the table holds it: lists, checks and the reference are made from it. */
export function tool<In extends z.ZodObject>(definition: Definition<In>): Tool {
  const { name, title, doc, kind } = definition
  return {
    name,
    title,
    description: doc,
    inputSchema: inputSchemaOf(definition.in),
    annotations: { title, openWorldHint: false, ...kinds[kind] },
    async run(given, bench) {
      const input = definition.in.safeParse(given ?? {})
      if (!input.success) throw new Fault("invalid", describeIssues(input.error), { subject: `tool:${name}` })
      return definition.run(input.data, bench)
    },
  }
}

/** Facts, for programs and, as JSON, for those that read only text. */
export function facts(value: Record<string, unknown>): CallToolResult {
  return { content: [{ type: "text", text: JSON.stringify(value) }], structuredContent: value }
}

export function text(...texts: readonly string[]): CallToolResult {
  return { content: texts.map((one) => ({ type: "text", text: one })) }
}

/** What went wrong, where the one who asked for it, often a model, can read it and do better. */
export function failure(fault: Fault): CallToolResult {
  const { code, message, hint } = fault
  const said = hint === undefined ? `${code}: ${message}` : `${code}: ${message} (${hint})`
  return { content: [{ type: "text", text: said }], structuredContent: { error: { ...fault.toData() } }, isError: true }
}

/** Fields that were given: what is left out stays left out. */
export function given<T extends Record<string, unknown>>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never
}

export const sessionField = z.string().min(1).max(128).meta({ description: "The session's name or id." })
