import { compilePolicy } from "@warren/drivers/oci/seccomp/compile.ts"
import { absent, seccompPolicy, type CheckedCall, type Policy } from "@warren/drivers/oci/seccomp/policy.ts"
import { archOf, archs } from "@warren/drivers/oci/seccomp/syscalls.ts"
import type { StartRequest } from "@warren/drivers/oci/launcher.ts"

/** One defence less: what is asked of the launcher, with something taken out of it. */
export interface Mutant {
  readonly name: string
  readonly change: (request: StartRequest) => StartRequest
}

/** The config as it is read, not as it must be. */
interface Loose {
  annotations: Record<string, string>
  process: {
    user: { uid: number; gid: number }
    noNewPrivileges: boolean
    capabilities: Record<string, string[]>
    rlimits: { type: string }[]
  }
  mounts: { destination: string; options: string[] }[]
  linux: Record<"maskedPaths" | "readonlyPaths", string[]> & { namespaces: { type: string }[] }
}

/** Every defence that a start asks for, taken away one at a time. */
export function mutantsOf(request: StartRequest): readonly Mutant[] {
  const config = JSON.parse(request.config) as Loose
  return [
    ...paths(config, "maskedPaths"),
    ...paths(config, "readonlyPaths"),
    ...config.linux.namespaces.map(({ type }) =>
      inConfig(`namespace ${type}`, ({ linux }) => {
        linux.namespaces = linux.namespaces.filter((one) => one.type !== type)
      }),
    ),
    ...config.mounts.flatMap(mountMutants),
    ...config.process.rlimits.map(({ type }) =>
      inConfig(`limit ${type}`, ({ process }) => {
        process.rlimits = process.rlimits.filter((one) => one.type !== type)
      }),
    ),
    inConfig("no-new-privileges", ({ process }) => (process.noNewPrivileges = false)),
    inConfig("init is nobody's", ({ process }) => Object.assign(process.user, { uid: 1000, gid: 1000 })),
    inConfig("capabilities of init", ({ process }) => {
      for (const set of Object.values(process.capabilities)) set.push("CAP_SYS_ADMIN", "CAP_NET_RAW", "CAP_MKNOD")
    }),
    inConfig("system call filter", (loose) => (loose.annotations = {})),
    ...request.binds
      .filter(({ readOnly }) => readOnly)
      .map(({ to }) => ({ name: `read-only ${to}`, change: (asked: StartRequest) => writable(asked, to) })),
    ...Object.keys(request.userLimits).map((key) => ({
      name: `user limit ${key}`,
      change: (asked: StartRequest) => ({ ...asked, userLimits: without(asked.userLimits, key) }),
    })),
    ...request.cgroups.map((folder) => ({
      name: `group ${folder.split("/")[4]}`,
      change: (asked: StartRequest) => ({
        ...asked,
        cgroups: asked.cgroups.filter((one) => part(one) !== part(folder)),
      }),
    })),
    { name: "ids of its own", change: (asked) => ({ ...asked, map: { ...asked.map, base: asked.map.base + 65_536 } }) },
    ...filterMutants(),
  ]
}

const part = (folder: string): string => folder.split("/")[4] ?? ""

function inConfig(name: string, change: (config: Loose) => void): Mutant {
  return {
    name,
    change: (request) => {
      const loose = JSON.parse(request.config) as Loose
      change(loose)
      return { ...request, config: JSON.stringify(loose) }
    },
  }
}

function paths({ linux }: Loose, kind: "maskedPaths" | "readonlyPaths"): readonly Mutant[] {
  const word = kind === "maskedPaths" ? "mask" : "read-only"
  return linux[kind].map((path) =>
    inConfig(`${word} ${path}`, (loose) => (loose.linux[kind] = loose.linux[kind].filter((one) => one !== path))),
  )
}

/** The mount itself, and each of its options; what it is called is none. */
function mountMutants({ destination, options }: Loose["mounts"][number]): readonly Mutant[] {
  const drop = inConfig(`mount ${destination}`, (loose) => {
    loose.mounts = loose.mounts.filter((mount) => mount.destination !== destination)
  })
  const each = options.map((option) =>
    inConfig(`mount ${destination} ${option}`, (loose) => {
      const mount = loose.mounts.find((one) => one.destination === destination)
      if (mount) mount.options = mount.options.filter((one) => one !== option)
    }),
  )
  return [drop, ...each]
}

function writable(request: StartRequest, to: string): StartRequest {
  return { ...request, binds: request.binds.map((bind) => (bind.to === to ? { ...bind, readOnly: false } : bind)) }
}

function without<T>(record: Readonly<Record<string, T>>, key: string): Record<string, T> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => name !== key))
}

/** Every call that is refused or absent, allowed; every check of an argument, dropped. */
function filterMutants(): readonly Mutant[] {
  const policy = seccompPolicy("dev")
  const open = (name: string): Policy => ({
    allowed: [...policy.allowed, name],
    refused: policy.refused.filter((one) => one !== name),
    checked: policy.checked.filter((one) => one.name !== name),
  })
  const { numbers } = facts()
  const closed = [...policy.refused, ...absent].filter((name) => numbers.has(name))
  return [
    ...closed.map((name) => filtered(`call ${name}`, open(name))),
    ...policy.checked.filter(({ name }) => numbers.has(name)).flatMap((call) => checkMutants(policy, call, open)),
  ]
}

function checkMutants(policy: Policy, call: CheckedCall, open: (name: string) => Policy): readonly Mutant[] {
  const replaced = (changed: CheckedCall): Policy => ({
    ...policy,
    checked: policy.checked.map((one) => (one === call ? changed : one)),
  })
  const conditions = call.anyOf.flatMap((all, n) =>
    all.map((condition, m) => {
      const fewer = call.anyOf.map((one, k) => (k === n ? one.filter((_, l) => l !== m) : one))
      return filtered(`check ${call.name} ${n}.${m} of argument ${condition.arg}`, replaced({ ...call, anyOf: fewer }))
    }),
  )
  return [filtered(`check ${call.name}`, open(call.name)), ...conditions]
}

function filtered(name: string, policy: Policy): Mutant {
  return inConfig(name, ({ annotations }) => {
    for (const key of Object.keys(annotations)) annotations[key] = compilePolicy(policy, facts()).toString("base64")
  })
}

function facts() {
  const arch = archOf(process.arch)
  if (arch === undefined) throw new Error(`there is no filter for ${process.arch}`)
  return archs[arch]
}
