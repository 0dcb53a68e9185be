import { readFile } from "node:fs/promises"
import { Fault } from "@warren/base/fault.ts"
import type { Users, UserRow } from "../store/users.ts"
import type { RunnerRoute } from "./runners.ts"

/** Where a user's runner is: as an admin has said, or where every runner of such a name is. */
export function routesOf(users: Users, template: string): (user: UserRow) => Promise<RunnerRoute | undefined> {
  return async (user) => {
    const hint = template === "" ? {} : { hint: startedBy(user.name) }
    const said = await users.routeOf(user.id)
    if (said) return { ...said, ...hint }
    const uid = template === "" ? undefined : await uidOf(user.name)
    if (uid !== undefined) return { socket: template.replaceAll("{user}", user.name), uid, ...hint }
    return undefined
  }
}

/** For what cannot be done without a runner. Whoever is given one later may go on, so the page tries again. */
export function needed(find: ReturnType<typeof routesOf>): (user: UserRow) => Promise<RunnerRoute> {
  return async (user) => {
    const route = await find(user)
    if (route) return route
    throw new Fault("unavailable", "you have no runner on this machine", { hint: "ask an administrator for one" })
  }
}

/** Nobody starts their own where there are many users. */
function startedBy(user: string): string {
  return `an administrator starts it: systemctl start warren-runner@${user}, or without systemd: sudo warren launcher`
}

async function uidOf(name: string): Promise<number | undefined> {
  const lines = (await readFile("/etc/passwd", "utf8")).split("\n")
  const uid = lines.find((line) => line.startsWith(`${name}:`))?.split(":")[2]
  return uid === undefined ? undefined : Number(uid)
}
