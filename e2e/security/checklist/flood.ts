import { once } from "node:events"
import { WebSocket } from "ws"
import { residentBytesOf, type Subject } from "./subject.ts"

export interface Flooded {
  readonly bytes: number
  readonly exit: Readonly<Record<string, unknown>> | undefined
  readonly seconds: number
}

/** Reads everything that a command says, as it comes: a WebSocket, through the control plane and the runner. */
export async function flooded(subject: Subject, cmd: string, signal: AbortSignal): Promise<Flooded> {
  const { system, session } = subject
  const headers = { authorization: `Bearer ${system.token}` }
  const socket = new WebSocket(`${system.url.replace("http", "ws")}/v1/sessions/${session}/exec`, { headers })
  signal.addEventListener("abort", () => socket.terminate(), { once: true })
  const begun = performance.now()
  let bytes = 0
  let exit: Flooded["exit"]
  socket.on("message", (data: Buffer, isBinary) => {
    // The first byte says which output it is of.
    if (isBinary) bytes += data.length - 1
    else exit = JSON.parse(data.toString()) as Flooded["exit"]
  })
  const closed = once(socket, "close")
  await once(socket, "open")
  socket.send(JSON.stringify({ cmd }))
  await closed
  return { bytes, exit, seconds: (performance.now() - begun) / 1_000 }
}

/** The most that each of the two programs had resident while `work` went on. */
export async function peaks<T>(
  subject: Subject,
  work: () => Promise<T>,
): Promise<{ readonly done: T; readonly runner: number; readonly control: number }> {
  const { pids } = subject.system
  const most = { runner: 0, control: 0 }
  const look = (): void => {
    for (const who of ["runner", "control"] as const) most[who] = Math.max(most[who], residentBytesOf(pids[who]))
  }
  const looking = setInterval(look, lookMs)
  try {
    const done = await work()
    look()
    return { done, ...most }
  } finally {
    clearInterval(looking)
  }
}

const lookMs = 50

/** How long a command takes in a session, in the middle: so often, or until it is told to stop. */
export async function middleMs(
  subject: Subject,
  session: string,
  times: number,
  signal?: AbortSignal,
): Promise<number> {
  const took: number[] = []
  while (took.length < times && !signal?.aborted) {
    const begun = performance.now()
    await subject.run("true", session)
    took.push(performance.now() - begun)
  }
  return took.toSorted((a, b) => a - b)[Math.floor(took.length / 2)] ?? 0
}
