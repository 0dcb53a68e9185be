import { flag } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { withRunner, type Desk } from "../desk.ts"
import { stopWarren } from "../lifecycle/stop.ts"
import { verb } from "../verb.ts"

export const stopVerb = verb({
  name: "stop",
  group: "Warren itself",
  doc: "Stop the runner and the control plane; with a SESSION, end that session's programs. Sandboxes of a stopped Warren go on.",
  examples: ["warren stop", "warren stop my-session --grace 2s"],
  flags: { grace: flag.duration("How long programs of the session may take to end") },
  words: {
    session: word.optional("SESSION", "Id or name of a session; without it Warren itself stops.", {
      completes: "session",
    }),
  },
  run: ({ words, flags }, desk) =>
    words.session === undefined ? stopAll(desk) : stopSession(words.session, flags.grace, desk),
})

async function stopAll(desk: Desk): Promise<void> {
  const { home } = await desk.place()
  const pids = await stopWarren(home, desk.signal)
  await desk.output.show({ home, pids }, () => "Warren has stopped: the runner and the control plane.")
}

async function stopSession(id: string, graceMs: number | undefined, desk: Desk): Promise<void> {
  const grace = graceMs === undefined ? {} : { graceMs }
  const session = await withRunner(desk, (runner) => runner.call("session.stop", { id, ...grace }))
  await desk.output.show(session, () => `${session.name} is ${session.state}.`)
}
