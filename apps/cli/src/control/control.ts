import { readFileSync, statSync } from "node:fs"
import { Fault } from "@warren/base/fault.ts"
import type { Answer, Asked, CallName } from "@warren/protocol/contract.ts"
import { controlPlane } from "@warren/protocol/control-plane.ts"
import { FaultData } from "@warren/protocol/fault.ts"
import { httpOf } from "@warren/protocol/http/path.ts"
import { tokenFileOf } from "@warren/protocol/places.ts"
import { z } from "zod"
import type { Desk } from "../desk.ts"
import { readHolder } from "../lifecycle/pid-file.ts"
import { listenersOf } from "../users/of-account.ts"
import { controlAddress } from "./address.ts"
import { speak } from "./connection.ts"

type Plane = typeof controlPlane

const answerMs = 15_000
const Refused = z.object({ error: FaultData })

/** Asks the control plane of this Warren through its public door, with the token in the owner's file. */
export async function askControl<K extends CallName<Plane>>(
  desk: Desk,
  name: K,
  input: Asked<Plane, K>,
): Promise<Answer<Plane, K>> {
  const { home, port: configured } = await desk.place()
  const port = readHolder(home)?.port ?? configured
  const token = tokenFor(home, port)
  const where = controlAddress(desk.terminal.env, port)
  const signal = AbortSignal.any([desk.signal, AbortSignal.timeout(answerMs)])
  const question = { ...questionOf(name, input), token }
  const answer = await speak(where, question, signal).catch((cause: unknown) => {
    desk.signal.throwIfAborted()
    throw cause instanceof Fault ? cause : noControl(home, cause)
  })
  if (answer.status < 300) return controlPlane[name].out.parse(JSON.parse(answer.text)) as Answer<Plane, K>
  throw refusalIn(answer.text) ?? noControl(home)
}

function refusalIn(text: string): Fault | undefined {
  try {
    return Fault.fromData(Refused.parse(JSON.parse(text)).error)
  } catch {
    return undefined
  }
}

function questionOf(name: CallName<Plane>, input: Readonly<Record<string, unknown>>) {
  const { method, path } = httpOf(controlPlane[name].http)
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(String(input[key])))
  return { method, path: filled, ...(method === "POST" ? { body: JSON.stringify(input) } : {}) }
}

/** Told to nobody but whose it is: anybody can listen on a port that is free. */
function tokenFor(home: string, port: number): string {
  try {
    const file = tokenFileOf(home)
    const { uid } = statSync(file)
    const listeners = listenersOf(port)
    if (listeners.length > 0 && listeners.every((one) => one === uid)) return readFileSync(file, "utf8").trim()
  } catch (cause) {
    throw noControl(home, cause)
  }
  throw noControl(home)
}

function noControl(home: string, cause?: unknown): Fault {
  return new Fault("unavailable", `no control plane answers for ${home}`, {
    hint: "start one with: warren start --daemon",
    cause,
  })
}
