import { execFile } from "node:child_process"
import { readFile } from "node:fs/promises"
import { promisify } from "node:util"
import { Fault } from "@warren/base/fault.ts"

/** Where this machine gets its software from, by its own configuration: an image that is made here gets it from there, too. */
export interface Supplies {
  /** For apt's `sources.list`: Debian as it is installed here. */
  readonly sources: string
  /** `bookworm`. */
  readonly release: string
  /** What apt on this machine is told about fetching. */
  readonly aptConfig: string
  /** Undefined where npm is not installed. */
  readonly npmRegistry: string | undefined
  /** Whom this machine trusts. */
  readonly certificates: string
}

const run = promisify(execFile)
const keyrings: Readonly<Record<string, string>> = {
  debian: "/usr/share/keyrings/debian-archive-keyring.gpg",
  ubuntu: "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
}
const certificatesAt = "/etc/ssl/certs/ca-certificates.crt"

export async function findSupplies(): Promise<Supplies> {
  const about = await readFile("/etc/os-release", "utf8").catch(() => "")
  const release = valueOf(about, "VERSION_CODENAME")
  const keyring = keyrings[valueOf(about, "ID")]
  const format = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
  const [targets, aptConfig, registry, certificates] = await Promise.all([
    said("apt-get", ["indextargets", "--format", format, "Created-By: Packages"]),
    said("apt-config", ["dump", "Acquire::Check-Valid-Until"]),
    said("npm", ["config", "get", "registry", "--loglevel=silent"]),
    readFile(process.env["SSL_CERT_FILE"] ?? certificatesAt, "utf8").catch(() => ""),
  ])
  const sources = sourcesOf(targets, release, keyring ?? "")
  if (keyring === undefined || sources === "") {
    throw new Fault("unsupported", "this machine's packages are not Debian's, so a Debian cannot be made of them", {
      hint: "pull or import an image of Debian, and give it the name debian",
    })
  }
  return { sources, release, aptConfig, npmRegistry: registry.trim() || undefined, certificates }
}

/** Lines for the main part of a release and its updates. */
function sourcesOf(targets: string, release: string, keyring: string): string {
  const wanted = new Set([release, `${release}-updates`, `${release}-security`])
  const lines = targets.split("\n").flatMap((line) => {
    const [uri = "", suite = "", component] = line.split(" ")
    const isOne = wanted.has(suite) && component === "main" && /^https?:/.test(uri)
    return isOne ? [`deb [signed-by=${keyring}] ${uri} ${suite} main`] : []
  })
  return [...new Set(lines)].map((line) => `${line}\n`).join("")
}

function valueOf(text: string, key: string): string {
  return new RegExp(`^${key}="?([\\w.-]*)"?$`, "m").exec(text)?.[1] ?? ""
}

async function said(program: string, args: readonly string[]): Promise<string> {
  return await run(program, args).then(
    ({ stdout }) => stdout,
    () => "",
  )
}
