import { Fault } from "@warren/base/fault.ts"
import type { Answer } from "@warren/protocol/contract.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"
import { setTimeout as pause } from "node:timers/promises"
import type { Desk } from "../desk.ts"
import type { Runner } from "../runner/runner.ts"

type Agent = Answer<typeof userPlane, "agent.get">

/** The agent of a session has a feed only once it is being started, and nobody tells when that is. */
const tryMs = 20

/** Starts an agent for which something is made ready, and says on the way how far that is. */
export async function showSteps(
  runner: Runner,
  desk: Desk,
  session: string,
  start: () => Promise<Agent>,
): Promise<Agent> {
  using progress = desk.output.progress()
  const before = (await agentOf(runner, session))?.feedSeq ?? 0
  let last: number | undefined
  let seen = before
  const starting = start()
  const over = starting.then(
    ({ feedSeq }) => void (last = feedSeq),
    () => void (last = 0),
  )
  const follow = async (): Promise<void> => {
    while (last === undefined && !(await agentOf(runner, session))) await pause(tryMs)
    for await (const { seq, item } of runner.feed("session.feed", { id: session, after: before })) {
      seen = seq
      if (item.type === "provision" && item.state === "running")
        progress.say(`${item.step} ${item.percent === undefined ? "…" : `${item.percent} %`}`)
      if (item.type === "provision" && item.state === "done" && item.detail !== undefined)
        desk.output.note(`${item.step}: ${item.detail}`)
      if (last !== undefined && seq >= last) return
    }
  }
  // What cannot be shown is no reason not to start.
  const following = follow().catch(() => undefined)
  await over
  if (seen < (last ?? 0)) await following
  return await starting
}

async function agentOf(runner: Runner, session: string): Promise<Agent | undefined> {
  try {
    return await runner.call("agent.get", { session })
  } catch (failure) {
    if (Fault.from(failure).code === "not_found") return undefined
    throw failure
  }
}
