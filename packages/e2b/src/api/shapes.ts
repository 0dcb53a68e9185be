import type { AccessTokens } from "../access-token.ts"
import { isPaused, type Sandbox } from "../sandboxes.ts"
import { metadataOf } from "../settings.ts"

/** Which features clients may use: all that theirs has at this version are here. */
export const envdVersion = "0.6.4"
const mib = 1024 * 1024

/** A sandbox as the one who made it, or connects to it, is told of it. */
export function madeShape({ id, settings }: Sandbox, tokens: AccessTokens, domain: string): object {
  const isPrivate = settings.network?.allowPublicTraffic === false
  return {
    ...{ sandboxID: id, templateID: settings.template, alias: settings.template, clientID: "warren", envdVersion },
    envdAccessToken: tokens.ofSandbox(id),
    ...(isPrivate ? { trafficAccessToken: tokens.ofTraffic(id) } : {}),
    ...(domain === "" ? {} : { domain }),
  }
}

/** One of a list. */
export function listedShape(sandbox: Sandbox): object {
  const { id, session, settings } = sandbox
  return {
    ...{ sandboxID: id, templateID: settings.template, alias: settings.template, clientID: "warren", envdVersion },
    startedAt: session.createdAt,
    endAt: session.expiresAt ?? session.createdAt,
    state: isPaused(sandbox) ? "paused" : "running",
    cpuCount: Math.max(1, Math.ceil(session.limits.cpus)),
    memoryMB: Math.round(session.limits.memoryBytes / mib),
    diskSizeMB: Math.round(session.limits.diskBytes / mib),
    metadata: metadataOf(session),
    volumeMounts: settings.volumes ?? [],
  }
}

export function detailShape(sandbox: Sandbox, domain: string): object {
  const { settings } = sandbox
  return {
    ...listedShape(sandbox),
    ...(domain === "" ? {} : { domain }),
    ...(settings.network ? { network: settings.network } : {}),
    allowInternetAccess: settings.internet ?? null,
    lifecycle: { onTimeout: settings.autoPause ? "pause" : "kill", autoResume: settings.autoResume ?? false },
  }
}
