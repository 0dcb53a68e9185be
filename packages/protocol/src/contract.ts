import type { z } from "zod"
import type { Conversation } from "./conversation.ts"
import type { CallScope } from "./token-scope.ts"

/**
 * One thing that can be asked across a process. A call has one answer (`out`); a feed has many (`each`), numbered, so that
 * a reader who was away asks for what came `after` the last one it saw.
 */
interface Common {
  /** The wire version it came with. New members and new optional fields only: the newer side adapts. */
  readonly since: number
  readonly doc: string
  /** What whoever asks from outside must be allowed to do. Contracts for everybody are `Scoped`: there it cannot be left out. */
  readonly scope?: CallScope
  /** `GET /v1/sessions/{id}`: how it is reached over HTTP; absent when it is not. */
  readonly http?: `${"GET" | "POST" | "PUT" | "PATCH" | "DELETE"} /${string}`
  readonly in: z.ZodObject
}

export interface Call extends Common {
  readonly out: z.ZodType
  /** It makes something: 201 over HTTP, and asked again with the same key it answers the same and makes nothing more. */
  readonly makes?: true
  /** How long a client waits for the answer unless it says otherwise. */
  readonly timeoutMs?: number
}

export interface Feed extends Common {
  readonly each: z.ZodType
}

/** Bytes and messages both ways, on a connection of its own, so that a slow reader holds back only itself. */
export interface Stream extends Common {
  /** What the caller may say while it runs. */
  readonly up: z.ZodType
  /** What it is told. */
  readonly down: z.ZodType
  /**
   * What it is over HTTP, where it has a route. `bytes`: its bytes are the body, of the answer to a GET and of the request
   * otherwise, answered with its last message, or events for who accepts those. `result`: everything it says is one answer,
   * or events, or a WebSocket. `socket`: a WebSocket and nothing else.
   */
  readonly body?: "bytes" | "result" | "socket"
  /** With `bytes`: the call that says how many there are, and in which field; parts can then be asked for by `Range`. */
  readonly size?: { readonly call: string; readonly field: string }
}

export type Entry = Call | Feed | Stream
export type Contract = Readonly<Record<string, Entry>>

/** A contract for everybody: each entry names the scope it needs. */
export type Scoped = Readonly<Record<string, Entry & { readonly scope: CallScope }>>

/** Keeps the literal types of a table, so that handlers, clients and routes can be made from it. */
export function contract<const C extends Contract>(table: C): C {
  return table
}

export function isFeed(entry: Entry): entry is Feed {
  return "each" in entry
}

export function isStream(entry: Entry): entry is Stream {
  return "down" in entry
}

export function isCall(entry: Entry): entry is Call {
  return "out" in entry
}

export type CallName<C extends Contract> = { [K in keyof C]: C[K] extends Call ? K : never }[keyof C] & string
export type FeedName<C extends Contract> = { [K in keyof C]: C[K] extends Feed ? K : never }[keyof C] & string
export type StreamName<C extends Contract> = { [K in keyof C]: C[K] extends Stream ? K : never }[keyof C] & string

/** What a caller writes: defaults may be left out. */
export type Asked<C extends Contract, K extends keyof C> = z.input<C[K]["in"]>
/** What a handler receives: checked, defaults filled in. */
export type Received<C extends Contract, K extends keyof C> = z.output<C[K]["in"]>
export type Answer<C extends Contract, K extends keyof C> = C[K] extends Call ? z.output<C[K]["out"]> : never
export type Item<C extends Contract, K extends keyof C> = C[K] extends Feed ? z.output<C[K]["each"]> : never

export type Up<C extends Contract, K extends keyof C> = C[K] extends Stream ? z.input<C[K]["up"]> : never
export type Down<C extends Contract, K extends keyof C> = C[K] extends Stream ? z.output<C[K]["down"]> : never

export interface Numbered<T> {
  readonly seq: number
  readonly item: T
}

/** Who asks. Taken from the connection or a checked token, never from a field of the request. */
export interface Caller {
  readonly name: string
}

export interface Context {
  /** Aborts when the caller cancels, goes away, or has waited long enough. */
  readonly signal: AbortSignal
  readonly caller: Caller
  /** The caller's own name for this request, for what `makes` something. */
  readonly key?: string | undefined
  /** Of a stream, only what it comes to is wanted: who can answer with `Collected` at less cost may. */
  readonly collects?: boolean | undefined
}

export const requestKeyCharsMax = 255

/** What must be written to answer a contract. */
export type Handlers<C extends Contract> = {
  readonly [K in keyof C]: C[K] extends Feed
    ? (input: Received<C, K>, context: Context) => AsyncIterable<Numbered<Item<C, K>>>
    : C[K] extends Stream
      ? (input: Received<C, K>, context: Context) => Promise<Conversation<Up<C, K>, Down<C, K>>>
      : (input: Received<C, K>, context: Context) => Promise<Answer<C, K>>
}
