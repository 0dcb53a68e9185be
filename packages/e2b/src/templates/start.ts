import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { z } from "zod"
import { Inside } from "../envd/inside.ts"
import type { Plane } from "../plane.ts"
import { runToEnd } from "../run-to-end.ts"
import type { Sandbox } from "../sandboxes.ts"
import { filled } from "../transfer.ts"

/** What a template has besides its files, kept among them. */
export const About = z.object({
  env: z.record(z.string(), z.string()).default({}),
  cwd: z.string().optional(),
  user: z.string().optional(),
  startCmd: z.string().optional(),
  readyCmd: z.string().optional(),
})
export type About = z.output<typeof About>

const place = "/etc/warren-template.json"
const aboutBytesMax = 256 * 1024
const readyTries = 300
const readyMs = 200

export async function readAbout(plane: Plane, sandbox: Sandbox): Promise<About> {
  const bytes = await new Inside(plane, sandbox, "root").read(place, aboutBytesMax).catch(() => Buffer.from("{}"))
  return About.parse(JSON.parse(bytes.toString()))
}

export async function writeAbout(plane: Plane, session: string, about: About): Promise<void> {
  const conversation = await plane.stream("file.write", { session, path: place, user: "root" })
  await filled(conversation, [Buffer.from(JSON.stringify(about))])
}

/** Its program runs, and says that it is ready. Theirs is running already when a sandbox is made of it; here it is started. */
export async function startProgram(plane: Plane, session: string, about: About, clock: Clock): Promise<void> {
  const { startCmd, readyCmd, env, cwd, user } = about
  const how = { session, env, ...(cwd === undefined ? {} : { cwd }), ...(user === undefined ? {} : { user }) }
  if (startCmd) await plane.call("process.spawn", { ...how, argv: ["/bin/bash", "-l", "-c", startCmd] })
  if (!readyCmd) return
  for (let at = 0; at < readyTries; at++) {
    const { exitCode } = await runToEnd(plane, { ...how, argv: ["/bin/bash", "-l", "-c", readyCmd] })
    if (exitCode === 0) return
    await clock.sleep(readyMs)
  }
  throw new Fault("timeout", "the program of the template is not ready", { hint: "see its ready command" })
}
