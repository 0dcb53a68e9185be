import { Fault } from "@warren/base/fault.ts"
import { runToEnd } from "../run-to-end.ts"
import { unknownUser, withUser, type Inside } from "./inside.ts"

/**
 * Their files are touched by a program that may everything and gives them to the user afterwards. Here the user does it;
 * what that one may not is done by root, as `sudo` inside would, and `given` then belongs to the user.
 */
export async function asThey<T>(inside: Inside, work: (user: string) => Promise<T>, given?: string): Promise<T> {
  try {
    return await withUser(inside.user, work(inside.user))
  } catch (thrown) {
    if (!(thrown instanceof Fault) || thrown.code !== "forbidden" || inside.user === "root") throw thrown
    const done = await work("root")
    if (given !== undefined) await give(inside, given)
    return done
  }
}

async function give({ plane, session, user }: Inside, path: string): Promise<void> {
  await runToEnd(plane, { session, user: "root", argv: ["chown", "-h", `${user}:`, path] })
}

/** Whom files belong to that root writes for the user. */
export async function ownerOf(inside: Inside): Promise<string> {
  const { exitCode, output } = await runToEnd(inside.plane, {
    ...{ session: inside.session, user: "root" },
    argv: ["sh", "-c", 'echo "$(id -u "$1"):$(id -g "$1")"', "sh", inside.user],
  })
  if (exitCode !== 0 || !/^\d+:\d+$/.test(output.trim())) throw unknownUser(inside.user)
  return output.trim()
}
