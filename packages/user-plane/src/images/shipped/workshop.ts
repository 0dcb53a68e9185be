import { chmod, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Scope } from "@warren/base/scope.ts"
import { defaultLimits, type SandboxSpec } from "@warren/drivers/sandbox-spec.ts"
import { whyNotPublic } from "../../egress/address.ts"
import { proxyEnvironment } from "../../egress/proxy-environment.ts"
import { EgressProxy } from "../../egress/proxy.ts"
import { resolveByDns } from "../../egress/resolver.ts"
import { suppliesAt } from "../layer/pack.ts"
import type { LayerStore } from "../store.ts"
import type { Supplies } from "./supplies.ts"

/** What sandboxes in which images are made have in common. */
export interface Workshop extends AsyncDisposable {
  readonly sandbox: Pick<SandboxSpec, "limits" | "network" | "mounts">
  readonly env: Readonly<Record<string, string>>
  /** Addresses that are not public and may be reached all the same, because this machine's own configuration leads there. */
  readonly exceptions: readonly string[]
  /** Of the sources of packages, inside. */
  readonly sourcesAt: string
}

const limits = { ...defaultLimits, cpus: 4, memoryBytes: 4 * 2 ** 30, pidsMax: 4096, openFilesMax: 16_384 }

/** Opens a way out to where this machine gets its software from, and to nowhere else. */
export async function openWorkshop(store: LayerStore, supplies: Supplies, signal: AbortSignal): Promise<Workshop> {
  await using scope = new Scope()
  // Drafts, because those are taken away also after a crash. Sandboxes see them through mounts of their own.
  const [network, shelf] = [scope.use(await store.draft()).path, scope.use(await store.draft()).path]
  const files = { "sources.list": supplies.sources, "apt.conf": supplies.aptConfig, "ca.crt": supplies.certificates }
  for (const [name, text] of Object.entries(files)) await writeFile(join(shelf, name), text, { mode: 0o644 })
  for (const one of [network, shelf]) await chmod(one, 0o755)
  const targets = targetsOf(supplies)
  const exceptions = await privateAmong(targets, signal)
  const policy = {
    mode: "list",
    allow: targets.map(({ host, port }) => `${host}:${port}`),
    allowPrivate: exceptions,
  } as const
  scope.use(await EgressProxy.listen({ path: join(network, "proxy.sock"), socketMode: 0o666, policy }))
  const owner = scope.move()
  return {
    sandbox: {
      limits,
      network: { mode: "proxy", folder: network },
      mounts: [{ from: shelf, to: suppliesAt, isReadOnly: true }],
    },
    env: { ...proxyEnvironment(), APT_CONFIG: `${suppliesAt}/apt.conf`, ...trusting(supplies) },
    exceptions,
    sourcesAt: `${suppliesAt}/sources.list`,
    [Symbol.asyncDispose]: () => owner.close(),
  }
}

interface Target {
  readonly host: string
  readonly port: number
}

function targetsOf({ sources, npmRegistry }: Supplies): Target[] {
  const texts = [...[...sources.matchAll(/https?:\S+/g)].map(([text]) => text), ...(npmRegistry ? [npmRegistry] : [])]
  const targets = texts.map((text) => {
    const { hostname, port, protocol } = new URL(text)
    return { host: hostname, port: Number(port || (protocol === "https:" ? 443 : 80)) }
  })
  return [...new Map(targets.map((target) => [`${target.host}:${target.port}`, target])).values()]
}

/** A mirror in one's own network is an ordinary thing; but only that one, and only where it is now. */
async function privateAmong(targets: readonly Target[], signal: AbortSignal): Promise<string[]> {
  const found = await Promise.all(
    targets.map(async ({ host, port }) => {
      const addresses = await resolveByDns(host, signal)
      return addresses
        .filter((address) => whyNotPublic(address) !== undefined)
        .map((address) => (address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`))
    }),
  )
  return [...new Set(found.flat())]
}

/** The names by which programs are told whom to trust. An image has its own list, which need not have who this machine trusts. */
function trusting({ certificates }: Supplies): Record<string, string> {
  if (certificates === "") return {}
  const names = ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "npm_config_cafile"]
  return Object.fromEntries(names.map((name) => [name, `${suppliesAt}/ca.crt`]))
}
