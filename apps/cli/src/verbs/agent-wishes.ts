import { readFile } from "node:fs/promises"
import { basename } from "node:path"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Answer, Asked } from "@warren/protocol/contract.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"
import { flag } from "../arguments/flag.ts"
import type { FlagValues } from "../arguments/flag.ts"
import { allPages } from "../runner/pages.ts"
import type { Runner } from "../runner/runner.ts"
import { given } from "./wishes.ts"

type Start = Asked<typeof userPlane, "agent.start">
type Key = Answer<typeof userPlane, "session.get">["keys"][number]

export const agentFlags = {
  agent: flag.choice(
    ["scripted", "opencode", "claude"],
    "Which agent; `scripted` needs no key, and only shows how it looks.",
  ),
  command: flag.text("LINE", "Any program as the agent: started for each prompt, which is its last argument."),
  acp: flag.text("LINE", "A program that speaks the Agent Client Protocol."),
  model: flag.list("MODEL", "A model for opencode (`openai/gpt-5`); the next is used when one fails."),
  repo: flag.text("REPO", "`owner/name` on GitHub, or an address; brought through the key broker."),
  branch: flag.text("NAME", "The remote's if it has it, otherwise a new one."),
  ref: flag.text("REF", "A commit, tag or branch."),
  folder: flag.text("FOLDER", "Where the repository goes, below the session's own folder."),
  persona: flag.text("FILE", "A file that says who the agent is.", { completes: "file" }),
  instructions: flag.list("FILE", "A file the agent is to heed.", { completes: "file" }),
  gitName: flag.text("NAME", "Who its commits are by."),
  gitEmail: flag.text("ADDRESS", "And their address."),
}
type AgentFlags = FlagValues<typeof agentFlags>

export async function startOf(flags: AgentFlags, session: string): Promise<Start> {
  const { gitName: name, gitEmail: email } = flags
  if ((name === undefined) !== (email === undefined))
    throw new Fault("invalid", "--git-name and --git-email go together")
  const instructions = await Promise.all(
    flags.instructions.map(async (path) => ({ name: basename(path), text: await textOf(path) })),
  )
  return {
    ...{ session, spec: specOf(flags) },
    ...given({ repo: flags.repo, branch: flags.branch, ref: flags.ref, folder: flags.folder }),
    ...given({
      identity: name !== undefined && email !== undefined ? { name, email } : undefined,
      persona: flags.persona === undefined ? undefined : await textOf(flags.persona),
      instructions: instructions.length > 0 ? instructions : undefined,
    }),
  }
}

/** Whether there is something to be made ready, and so to be shown. */
export function hasSteps({ repo, identity, persona, instructions }: Start): boolean {
  return [repo, identity, persona, instructions].some((wish) => wish !== undefined)
}

function specOf({ agent, command, acp, model }: AgentFlags): Start["spec"] {
  const [one, ...more] = [agent, command, acp].filter((said) => said !== undefined)
  if (one !== undefined && more.length > 0) throw new Fault("invalid", "--agent, --command and --acp: say one of them")
  if (model.length > 0 && agent !== "opencode") throw new Fault("invalid", "--model is for --agent opencode")
  if (command !== undefined) return { adapter: "command", ...lineOf(command, "--command") }
  if (acp !== undefined) return { adapter: "acp", ...lineOf(acp, "--acp") }
  if (agent === "opencode") return { adapter: "opencode", models: [...model] }
  if (agent === "claude") return { adapter: "command", cmd: "claude", speaks: "claude" }
  return { adapter: "scripted" }
}

function lineOf(line: string, name: string): { cmd: string; args: string[] } {
  const [cmd, ...args] = line.split(/\s+/).filter((word) => word !== "")
  if (cmd === undefined) throw new Fault("invalid", `${name} is empty`)
  return { cmd, args }
}

/** The keys an agent needs and that the vault has: for the repository, and for the models. */
export async function keysFor(runner: Runner, { spec, repo }: Start): Promise<Key[]> {
  const secrets = new Set((await allPages((page) => runner.call("secrets.list", page))).map(({ name }) => name))
  const keys: Key[] = []
  const thinks = spec.adapter !== "scripted"
  if (thinks && secrets.has("ANTHROPIC_API_KEY")) keys.push({ scope: "llm:anthropic" })
  if (thinks && secrets.has("OPENAI_API_KEY")) keys.push({ scope: "llm:openai" })
  const destination = repo === undefined ? undefined : destinationOf(repo)
  const host = destination
    ?.split("/")[0]
    ?.toUpperCase()
    .replaceAll(/[^A-Z0-9]/g, "_")
  const hasToken = secrets.has("GIT_TOKEN") || secrets.has(`GIT_TOKEN_${host}`)
  if (destination !== undefined && hasToken) keys.push({ scope: "git:write", destination })
  return keys
}

/** `host/owner/name`; undefined for what lies inside. */
function destinationOf(repo: string): string | undefined {
  if (/^[\w.-]+\/[\w.-]+$/.test(repo)) return `github.com/${repo}`.replace(/\.git$/, "")
  const [, host, path] =
    /^(?:https?:\/\/|ssh:\/\/(?:\w+@)?)([\w.-]+(?::\d+)?)\/(.+)$/.exec(repo) ??
    /^[\w.-]+@([\w.-]+):(.+)$/.exec(repo) ??
    []
  return host === undefined || path === undefined
    ? undefined
    : `${host}/${path.replace(/\/+$/, "").replace(/\.git$/, "")}`
}

/** Those it has stay. */
export function withKeys(has: readonly Key[], wants: readonly Key[]): Key[] {
  const isThere = (key: Key): boolean =>
    has.some((one) => one.scope === key.scope && one.destination === key.destination)
  return [...has, ...wants.filter((key) => !isThere(key))]
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8")
  } catch (cause) {
    throw new Fault("not_found", `cannot read ${path}: ${messageOf(cause)}`, { cause })
  }
}
