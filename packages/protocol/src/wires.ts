import { faultCodes } from "@warren/base/fault.ts"
import { frameLimits, streamTags } from "@warren/base/frame.ts"
import { z } from "zod"
import { controlPlane } from "./control-plane.ts"
import { isFeed, isStream, type Contract, type Entry } from "./contract.ts"
import * as init from "./init.ts"
import { launcher } from "./launcher/launcher.ts"
import { rpcLimits, rpcVersion } from "./rpc/wire.ts"
import * as rpc from "./rpc/wire.ts"
import { Control, hubLimits } from "./hub/frames.ts"
import { HubDown, HubUp, ProcessTruth } from "./hub/messages.ts"
import { userPlane } from "./user-plane.ts"
import { Bootstrap } from "./bootstrap.ts"
import { StdioCommand, StdioEvent, stdioLimits } from "./supervisor/lines.ts"

/** Every wire there is, as plain data: what the lock file freezes and the reference is made from. */
export function describeWires(): Record<string, unknown> {
  return {
    frames: { limits: frameLimits, tags: streamTags },
    faults: faultCodes,
    rpc: { version: rpcVersion, limits: rpcLimits, messages: rpcMessages() },
    init: { version: init.initVersion, messages: initMessages() },
    hub: { limits: hubLimits, messages: hubMessages() },
    supervisor: { limits: stdioLimits, messages: stdioMessages() },
    userPlane: describeContract(userPlane),
    controlPlane: describeContract(controlPlane),
    launcher: describeContract(launcher),
  }
}

function rpcMessages(): Record<string, unknown> {
  const { Hello, Welcome, Request, Cancel, Out, Failed, FeedItem, FeedEnd, Open, Opened, Say, Held } = rpc
  const messages = { Hello, Welcome, Request, Cancel, Out, Failed, FeedItem, FeedEnd, Open, Opened, Say, Held }
  return mapValues(messages, (schema) => shape(schema, "output"))
}

function initMessages(): Record<string, unknown> {
  const { InitRequest, InitControl, InitEvent, InitHello, InitProcess, InitUsage } = init
  return {
    ...mapValues({ InitRequest, InitControl }, (schema) => shape(schema, "input")),
    ...mapValues({ InitEvent, InitHello, InitProcess, InitUsage }, (schema) => shape(schema, "output")),
  }
}

function hubMessages(): Record<string, unknown> {
  return mapValues({ HubDown, HubUp, Control, ProcessTruth, Bootstrap }, (schema) => shape(schema, "input"))
}

function stdioMessages(): Record<string, unknown> {
  return { StdioCommand: shape(StdioCommand, "input"), StdioEvent: shape(StdioEvent, "output") }
}

function mapValues<T>(table: Readonly<Record<string, T>>, change: (value: T) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(table).map(([name, value]): [string, unknown] => [name, change(value)]))
}

export function describeContract(contract: Contract): Record<string, unknown> {
  return mapValues(contract, (entry) => ({
    since: entry.since,
    http: entry.http ?? null,
    ...(entry.scope && { scope: entry.scope }),
    in: shape(entry.in, "input"),
    ...describeAnswer(entry),
  }))
}

function describeAnswer(entry: Entry): Record<string, unknown> {
  if (isFeed(entry)) return { each: shape(entry.each, "output") }
  if (isStream(entry)) {
    const http = { ...(entry.body && { body: entry.body }), ...(entry.size && { size: entry.size }) }
    return { ...http, up: shape(entry.up, "input"), down: shape(entry.down, "output") }
  }
  return { ...(entry.makes && { makes: entry.makes }), out: shape(entry.out, "output") }
}

function shape(schema: z.ZodType, io: "input" | "output"): unknown {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" })
  return rest
}
