import type { Images } from "../images/images.ts"
import type { Vault } from "../vault/vault.ts"
import type { EnvironmentOf } from "./handlers.ts"

/**
 * What programs find in their environment, the later overruling the earlier: the image's, the runner's, the way out, the session's,
 * its secrets, and what was asked for this one.
 */
export function environmentWith(common: Readonly<Record<string, string>>, images: Images, vault: Vault): EnvironmentOf {
  const ofImages = new Map<string, Record<string, string>>()
  const ofImage = (name: string): Record<string, string> => {
    if (name === "host") return {}
    const known = ofImages.get(name)
    if (known) return known
    if (ofImages.size >= imagesKept) ofImages.clear()
    const env = pairs(images.inspect(name).env)
    ofImages.set(name, env)
    return env
  }
  return ({ live, record }, asked) => ({
    ...ofImage(record.plan.image),
    ...common,
    ...live.wayOut?.environment(),
    ...record.env,
    ...Object.fromEntries(record.secrets.map((name) => [name, vault.reveal(name, `session ${record.id}`)])),
    ...asked,
  })
}

const imagesKept = 256

function pairs(env: readonly string[]): Record<string, string> {
  return Object.fromEntries(env.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]))
}
