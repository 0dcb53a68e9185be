import { Fault } from "@warren/base/fault.ts"
import type { LeaseScope } from "./lease.ts"

/** What a request to the broker wants, read from its path and nothing else. */
export interface Errand {
  readonly service: "anthropic" | "openai" | "git"
  /** One of these scopes is needed. */
  readonly scopes: readonly LeaseScope[]
  /** Of a git errand: the host in the path. An LLM's is the runner's to know. */
  readonly host: string | undefined
  /** Of a git errand: `owner/repository`, lower case, without `.git`. */
  readonly repository: string | undefined
  /** What is asked of the destination, byte for byte. */
  readonly path: string
  /** What stands before it in the broker's own path: `/git/github.com`. */
  readonly prefix: string
}

const llm = /^\/(anthropic|openai)(\/v1\/[^?#]*(?:\?[^#]*)?)$/
const git =
  /^\/git\/([a-z0-9.-]+(?::\d{1,5})?)(\/([^?#]+?)\/(info\/refs|git-upload-pack|git-receive-pack)(?:\?([^#]*))?)$/

/**
 * What is read here is what is sent on: a path that some server could understand in another way (dots, doubled or encoded slashes,
 * backslashes) is refused.
 */
export function errandOf(method: string, url: string): Errand {
  const [path = ""] = url.split("?")
  const isPlain = /^[\x21-\x7e]+$/.test(url) && !/\/\/|\/\.{1,2}(?:\/|$)|\\|%2e|%2f|%5c|%00/i.test(path)
  if (!isPlain) throw new Fault("invalid", "the path can be read in more than one way")
  const found = llmErrand(url) ?? gitErrand(method, url)
  if (!found) throw new Fault("not_found", "the broker has nothing there")
  return found
}

function llmErrand(url: string): Errand | undefined {
  const [, service, path] = llm.exec(url) ?? []
  if ((service !== "anthropic" && service !== "openai") || path === undefined) return undefined
  return { service, scopes: [`llm:${service}`], host: undefined, repository: undefined, path, prefix: `/${service}` }
}

/** The smart HTTP protocol's three requests, and no others. */
function gitErrand(method: string, url: string): Errand | undefined {
  const [, host, path, repository, action, query = ""] = git.exec(url) ?? []
  if (host === undefined || path === undefined || repository === undefined || action === undefined) return undefined
  const isRefs = action === "info/refs"
  const verb = isRefs ? query.replace(/^service=/, "") : action
  const isKnown = verb === "git-upload-pack" || verb === "git-receive-pack"
  if (!isKnown || (isRefs ? method !== "GET" : method !== "POST" || query !== "")) return undefined
  return {
    service: "git",
    scopes: verb === "git-upload-pack" ? ["git:read", "git:write"] : ["git:write"],
    host,
    repository: repository.toLowerCase().replace(/\.git$/, ""),
    path,
    prefix: `/git/${host}`,
  }
}
