import { createHash } from "node:crypto"
import { posix } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import { z } from "zod"
import { withUser } from "../envd/inside.ts"
import type { Plane } from "../plane.ts"
import { filled, poured } from "../transfer.ts"
import type { About } from "./start.ts"
import { filesPath, filesWorkspace } from "./uploads.ts"

export const Step = z.object({
  type: z.enum(["RUN", "COPY", "WORKDIR", "USER", "ENV"]),
  args: z.array(z.string()).default([]),
  filesHash: z.string().optional(),
  force: z.boolean().optional(),
})
export type Step = z.output<typeof Step>

/** Where a build is: its session, and what the steps so far have said about those that follow. */
export interface Site {
  readonly plane: Plane
  readonly session: string
  readonly about: About
  tell(text: string): void
}

const archive = "/var/tmp/.warren-copy"
const lineCharsMax = 4_096

/** What the steps up to this one make: the same steps on the same ground make the same. */
export function digestOf(before: string, step: Step): string {
  return createHash("sha256")
    .update(JSON.stringify([before, step.type, step.args, step.filesHash]))
    .digest("hex")
}

export function stepText({ type, args }: Step): string {
  return `${type} ${args.join(" ")}`.slice(0, lineCharsMax)
}

/** Does a step; what is said about those that follow. */
export async function take(site: Site, step: Step): Promise<About> {
  const { about } = site
  const [first = "", second = "", third = "", fourth = ""] = step.args
  switch (step.type) {
    case "ENV": {
      const pairs = step.args.flatMap((name, at) => (at % 2 === 0 ? [[name, step.args[at + 1] ?? ""] as const] : []))
      return { ...about, env: { ...about.env, ...Object.fromEntries(pairs) } }
    }
    case "USER":
      await run(site, "id -u >/dev/null", first, first)
      return { ...about, user: first }
    case "WORKDIR": {
      const cwd = posix.resolve(homeOf(about), about.cwd ?? "", first.replace(/^~/, homeOf(about)))
      await script(site, 'mkdir -p "$1" && chown "$2:" "$1"', [cwd, userOf(about)])
      return { ...about, cwd }
    }
    case "RUN":
      await run(site, first, second || userOf(about), first)
      return about
    case "COPY":
      await copy(site, step, { from: first, to: second, user: third || userOf(about), mode: fourth })
      return about
  }
}

const userOf = ({ user }: About): string => user ?? "user"
const homeOf = (about: About): string => (userOf(about) === "root" ? "/root" : `/home/${userOf(about)}`)

async function run(site: Site, cmd: string, user: string, shown: string): Promise<void> {
  const cwd = site.about.cwd ?? (user === "root" ? "/root" : "/home/user")
  await execute(site, { argv: ["/bin/bash", "-l", "-c", cmd], user, cwd }, shown)
}

async function script(site: Site, text: string, args: readonly string[]): Promise<void> {
  await execute(site, { argv: ["/bin/sh", "-c", text, "sh", ...args], user: "root", cwd: "/" }, text)
}

async function execute(site: Site, how: { argv: string[]; user: string; cwd: string }, shown: string): Promise<void> {
  const failed = (why: string): Fault =>
    new Fault("invalid", `failed to run command '${shown}': command failed: ${why}`)
  const { plane, session, about } = site
  const asked = plane.stream("process.exec", { session, env: about.env, ...how })
  await using exec = await withUser(how.user, asked).catch((thrown: unknown) => {
    const fault = Fault.from(thrown)
    throw failed(fault.code === "unauthenticated" ? `unauthenticated: ${fault.message}` : fault.message)
  })
  for (
    let item = await nextOf(exec, how.user, failed);
    item !== undefined;
    item = await nextOf(exec, how.user, failed)
  ) {
    if (item instanceof Chunk) site.tell(item.bytes.toString())
    else if (item.ev === "exit") {
      if (item.exitCode === 0) return
      throw failed(item.exitCode === null ? `signal ${item.signal}` : `exit status ${item.exitCode}`)
    }
  }
}

type Exec = Awaited<ReturnType<typeof execOf>>
function execOf(plane: Plane) {
  return plane.stream("process.exec", { session: "", argv: [""] })
}

/** Init says that nobody has the name only when it comes to starting the program. */
function nextOf(exec: Exec, user: string, failed: (why: string) => Fault) {
  return withUser(user, exec.next()).catch((thrown: unknown) => {
    const fault = Fault.from(thrown)
    throw failed(fault.code === "unauthenticated" ? `unauthenticated: ${fault.message}` : fault.message)
  })
}

interface Copy {
  readonly from: string
  readonly to: string
  readonly user: string
  readonly mode: string
}

/** What was sent for it is a tree: a folder's content goes into the place, a file becomes it or goes into it. */
const copyScript = `
set -e
tree=$1.d; mkdir -p "$tree"; tar -xf "$1" -C "$tree"; rm -f "$1"
case $3 in */) mkdir -p "$3";; esac
set -- "$2" "$3" "$4" "$5"
cd "$tree"
list=$1; case $list in ./) list=.;; esac
for one in $list; do
  if [ -d "$one" ]; then mkdir -p "$2"; cp -a "$one/." "$2/"
  elif [ -d "$2" ]; then cp -a "$one" "$2/"
  else mkdir -p "$(dirname "$2")"; cp -a "$one" "$2"; fi
done
chown -R "$3:" "$2"
if [ -n "$4" ]; then chmod -R "$4" "$2"; fi
cd /; rm -rf "$tree"
`

async function copy(site: Site, { filesHash = "" }: Step, { from, to, user, mode }: Copy): Promise<void> {
  const { plane, session, about } = site
  const source = await plane.stream("workspace.read", { name: filesWorkspace, path: filesPath(filesHash) })
  await filled(await plane.stream("file.write", { session, path: archive, user: "root" }), poured(source))
  const isFolder = /\/$|^\.$|\/\.$/.test(to)
  const place = posix.resolve(about.cwd ?? homeOf(about), to.replace(/^~/, homeOf(about)))
  await script(site, copyScript, [archive, from, isFolder ? `${place}/` : place, user, mode])
}
