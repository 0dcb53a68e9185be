import type { Asked } from "@warren/protocol/contract.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"
import { KeyUse } from "@warren/protocol/user-plane/session.ts"
import { Fault } from "@warren/base/fault.ts"
import { flag, type FlagValues, type Variable } from "../arguments/flag.ts"
import { readEnvFile, valueOf } from "../config/forwarding.ts"
import type { Desk } from "../desk.ts"

/** What a new session is asked to be: the flags of `run` and `create`. */
export const wishFlags = {
  image: flag.text("IMAGE", "What it starts from; the host's own files when absent.", { completes: "image" }),
  from: flag.text("SNAPSHOT", "A snapshot to start from.", { completes: "snapshot" }),
  net: flag.choice(
    ["none", "proxy", "bridge", "host"],
    "What it reaches: nothing, allowed hosts, everything public, all.",
  ),
  allow: flag.list(
    "HOST",
    "A host it may reach (`github.com`, `*.npmjs.org`, `*` for every public one); implies --net proxy.",
  ),
  lend: flag.list(
    "USE",
    "A key its programs use without seeing it: `llm:anthropic`, `git:write=github.com/acme/widgets`.",
  ),
  workspace: flag.text("NAME", "Mounted at /workspace; made when there is none of that name.", {
    completes: "workspace",
  }),
  name: flag.text("NAME", "Its name; one is made up when absent."),
  label: flag.pairs("To find it by."),
  env: flag.environment("A variable of its programs"),
  envFile: flag.list("FILE", "Variables, one on each line.", { completes: "file" }),
  secret: flag.list("NAME", "A secret its programs get as a variable.", { completes: "secret" }),
  memory: flag.size("How much memory it may use"),
  cpus: flag.number("COUNT", "How many processors it may use (`0.5`).", { min: 0.01, max: 1024 }),
  pids: flag.whole("COUNT", "How many processes it may have.", { min: 8, max: 1_000_000 }),
  disk: flag.size("How much it may write"),
  profile: flag.choice(["dev", "strict"], "`dev`: one may be root inside; `strict`: nobody is."),
  driver: flag.choice(["oci", "process"], "How its sandbox is made; the runner's own choice when absent."),
  ttl: flag.duration("It ends this long after it was last used"),
  life: flag.duration("It ends this long after it was made, used or not"),
}
type WishFlags = FlagValues<typeof wishFlags>
type Wishes = Asked<typeof userPlane, "session.create">

export async function wishesOf(flags: WishFlags, desk: Desk): Promise<Wishes> {
  const limits = given({
    memoryBytes: flags.memory,
    cpus: flags.cpus,
    pidsMax: flags.pids,
    diskBytes: flags.disk,
  })
  return {
    labels: flags.label,
    env: await environmentOf(flags, desk),
    secrets: [...flags.secret],
    keys: flags.lend.map(keyUseOf),
    limits,
    ...given({
      image: flags.image,
      from: flags.from,
      workspace: flags.workspace,
      name: flags.name,
      profile: flags.profile,
      driver: flags.driver,
      ttlMs: flags.ttl,
      lifeMs: flags.life,
      network: networkOf(flags),
    }),
  }
}

function keyUseOf(text: string): NonNullable<Wishes["keys"]>[number] {
  const [scope = "", destination] = text.split("=", 2)
  const known = KeyUse.shape.scope.safeParse(scope)
  if (!known.success)
    throw new Fault("invalid", `--lend ${text}: there is no scope ${scope}`, {
      hint: KeyUse.shape.scope.options.join(", "),
    })
  return { scope: known.data, ...(destination === undefined ? {} : { destination }) }
}

function networkOf({ net, allow }: WishFlags): Wishes["network"] {
  // Quoted in a shell; every public host, on the ports of the web.
  if (allow.includes("*") && (net === undefined || net === "proxy")) {
    return { mode: "proxy", access: "all-public", allow: allow.filter((host) => host !== "*") }
  }
  if (allow.length === 0) return net === undefined ? undefined : { mode: net }
  if (net === undefined || net === "proxy") return { mode: "proxy", allow: [...allow] }
  throw new Fault("invalid", `--allow is for --net proxy: with ${net} there is nothing that could allow or refuse`)
}

export async function environmentOf(
  flags: { readonly env: readonly Variable[]; readonly envFile: readonly string[] },
  desk: Desk,
): Promise<Record<string, string>> {
  const files = await Promise.all(flags.envFile.map(readEnvFile))
  return Object.fromEntries([...files.flat(), ...flags.env].flatMap((each) => [...valueOf(each, desk.terminal.env)]))
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** Without what was not said, so that the other side's own choice counts. */
export function given<T extends Readonly<Record<string, unknown>>>(values: T): Given<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Given<T>
}
