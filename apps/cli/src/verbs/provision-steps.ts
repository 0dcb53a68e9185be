import { Fault } from "@warren/base/fault.ts"
import type { Answer } from "@warren/protocol/contract.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"
import { setTimeout as pause } from "node:timers/promises"
import type { Desk } from "../desk.ts"
import type { Runner } from "../runner/runner.ts"

type Agent = Answer<typeof userPlane, "agent.get">

/** The agent of a session has a feed only once it is being started, and nobody tells when that is. */
const tryMs = 20

/** Waits for an agent to be ready, and says on the way how far it is. */
export async function showSteps(runner: Runner, desk: Desk, session: string, starting: Promise<Agent>): Promise<Agent> {
  using progress = desk.output.progress()
  let isOver = false
  const over = starting.finally(() => (isOver = true))
  over.catch(() => undefined)
  const follow = async (): Promise<void> => {
    const { feedSeq: after } = await begun(runner, session, () => isOver)
    for await (const { item } of runner.feed("session.feed", { id: session, after: Math.max(0, after - stepsMax) })) {
      if (isOver) return
      if (item.type !== "provision") continue
      const { step, state, percent, detail } = item
      if (state === "running") progress.say(`${step} ${percent === undefined ? "…" : `${percent} %`}`)
      else if (state === "done" && detail !== undefined) desk.output.note(`${step}: ${detail}`)
    }
  }
  // What cannot be shown is no reason not to start.
  const following = follow().catch(() => undefined)
  await Promise.race([over, following.then(() => over)])
  return await over
}

/** What happened before anybody could look is shown, too. */
const stepsMax = 100

async function begun(runner: Runner, session: string, isOver: () => boolean): Promise<Agent> {
  for (;;) {
    try {
      return await runner.call("agent.get", { session })
    } catch (failure) {
      if (isOver() || Fault.from(failure).code !== "not_found") throw failure
    }
    await pause(tryMs)
  }
}
