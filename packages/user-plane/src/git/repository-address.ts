import { Fault } from "@warren/base/fault.ts"

/** Where a repository is. */
export interface RepositoryAddress {
  /** As git is given it. */
  readonly url: string
  /** The last part of its path, for the name of a folder. */
  readonly name: string
  /** Absent: it lies in the sandbox itself. */
  readonly host?: string
  /** `owner/name`, as its host spells it, without `.git`. */
  readonly path: string
}

const short = /^[\w.-]+\/[\w.-]+$/
const scp = /^(?:[\w.-]+@)([\w.-]+):(?!\/\/)([^\s]+)$/

/** Throws what a person can act on. */
export function addressOf(repo: string): RepositoryAddress {
  // As it is written: whoever reads it as a URL takes steps up away, and then it is another address than git is given.
  if (repo.startsWith("-") || /[\s\\]|:\/\/\/|(?:^|\/)\.{1,2}(?:\/|$)/.test(repo.replace(/^file:/, "")))
    throw wrong(repo)
  if (short.test(repo)) return remote(`https://github.com/${repo.replace(/\.git$/, "")}.git`, "github.com", repo)
  if (repo.startsWith("/")) return local(repo, repo)
  const [, scpHost, scpPath] = scp.exec(repo) ?? []
  if (scpHost !== undefined && scpPath !== undefined) return remote(repo, scpHost, scpPath)
  const url = URL.canParse(repo) ? new URL(repo) : undefined
  if (url?.protocol === "file:") return local(repo, url.pathname)
  if (!url || !["https:", "http:", "ssh:"].includes(url.protocol)) throw wrong(repo)
  const isSecretive = url.password !== "" || (url.username !== "" && url.protocol !== "ssh:")
  if (isSecretive)
    throw new Fault("invalid", "an address with a token in it would be written to the sandbox's disk", {
      hint: "set the secret GIT_TOKEN, and lend the session the key git:write for the repository",
    })
  return remote(repo, url.host, url.pathname.slice(1))
}

/** Whether both lead to the same repository, however they are written. */
export function isSameAddress(one: string, other: string): boolean {
  try {
    const [a, b] = [addressOf(one), addressOf(other)]
    return a.host === b.host && a.path.toLowerCase() === b.path.toLowerCase()
  } catch {
    return one === other
  }
}

function remote(url: string, host: string, path: string): RepositoryAddress {
  const plain = path.replace(/\/+$/, "").replace(/\.git$/, "")
  // A host that begins so would be an option of ssh's.
  if (plain === "" || host.startsWith("-") || plain.split("/").includes("..")) throw wrong(url)
  return { url, host: host.toLowerCase(), path: plain, name: nameOf(plain, url) }
}

function local(url: string, path: string): RepositoryAddress {
  const plain = path.replace(/\/+$/, "").replace(/\.git$/, "")
  return { url, path: plain, name: nameOf(plain, url) }
}

function nameOf(path: string, repo: string): string {
  const name = path.split("/").at(-1) ?? ""
  if (name === "" || name === "." || name === ".." || name.startsWith("-")) throw wrong(repo)
  return name
}

function wrong(repo: string): Fault {
  return new Fault("invalid", `"${repo.slice(0, 200)}" is no repository`, {
    hint: "write owner/name, or an address such as https://github.com/owner/name.git",
  })
}
