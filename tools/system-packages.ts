import { spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"
import { delimiter, join } from "node:path"
import { step } from "./progress.ts"

type Purpose = "start" | "test"

interface SystemPackage {
  /** A program or a file that is there when the package is. */
  readonly finds: string
  readonly name: string
  readonly why: string
  readonly for: Purpose
}

/** What Warren needs from the system, by the name Debian and Ubuntu give it. */
export const systemPackages: readonly SystemPackage[] = [
  { finds: "cc", name: "gcc", why: "compiles init, PID 1 of a sandbox", for: "start" },
  { finds: "/usr/include/stdio.h", name: "libc6-dev", why: "the headers for that", for: "start" },
  { finds: "musl-gcc", name: "musl-tools", why: "makes init smaller", for: "start" },
  { finds: "/usr/include/linux/landlock.h", name: "linux-libc-dev", why: "the kernel's headers", for: "start" },
  { finds: "crun", name: "crun", why: "starts sandboxes", for: "start" },
  { finds: "mkfs.btrfs", name: "btrfs-progs", why: "gives sandboxes disk limits and instant snapshots", for: "start" },
  { finds: "mount", name: "mount", why: "for that", for: "start" },
  { finds: "setfattr", name: "attr", why: "unpacks images", for: "start" },
  { finds: "zstd", name: "zstd", why: "unpacks images", for: "start" },
  { finds: "ip", name: "iproute2", why: "connects sandboxes to the network", for: "start" },
  { finds: "nft", name: "nftables", why: "keeps them from the host and from each other", for: "start" },
  { finds: "git", name: "git", why: "fetches repositories", for: "start" },
  { finds: "clang", name: "clang", why: "builds the fuzzers", for: "test" },
  {
    finds: "/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux/libclang_rt.fuzzer-x86_64.a",
    name: "libclang-rt-14-dev",
    why: "the fuzzing engine",
    for: "test",
  },
  { finds: "newuidmap", name: "uidmap", why: "gives an ordinary user's sandboxes their ids", for: "test" },
  { finds: "runc", name: "runc", why: "the other OCI runtime", for: "test" },
  { finds: "curl", name: "curl", why: "calls the API as a person would", for: "test" },
  { finds: "docker-registry", name: "docker-registry", why: "a real registry to pull from", for: "test" },
  { finds: "skopeo", name: "skopeo", why: "pushes to it", for: "test" },
  { finds: "/usr/bin/busybox", name: "busybox-static", why: "a small image", for: "test" },
  { finds: "/usr/lib/postgresql", name: "postgresql", why: "the control plane's other database", for: "test" },
  { finds: "chromium", name: "chromium", why: "opens the page as a person would", for: "test" },
  { finds: "Xtigervnc", name: "tigervnc-standalone-server", why: "a desktop in a sandbox", for: "test" },
  { finds: "openbox", name: "openbox", why: "its windows", for: "test" },
  { finds: "xauth", name: "xauth", why: "who may see it", for: "test" },
  { finds: "xdpyinfo", name: "x11-utils", why: "whether it is there", for: "test" },
  { finds: "bwrap", name: "bubblewrap", why: "what we are measured against", for: "test" },
]

/** Installs what is missing when it may; otherwise says the one command to run. */
export async function ensureSystemPackages(purpose: Purpose): Promise<void> {
  const missing = systemPackages.filter(
    (item) => (item.for === "start" || item.for === purpose) && !isPresent(item.finds),
  )
  if (missing.length === 0) return
  const names = missing.map((item) => item.name)
  console.log(`Missing on this machine: ${missing.map((item) => `${item.name} (${item.why})`).join(", ")}.`)
  if (process.getuid?.() !== 0 || !isPresent("apt-get")) {
    console.error(
      `Install it, then try again:\n\n    sudo apt-get install -y --no-install-recommends ${names.join(" ")}\n`,
    )
    process.exit(1)
  }
  await step("Reading the package lists (apt-get update)", () => apt(["update", "-qq"]))
  await step(`Installing ${names.join(", ")} with apt-get`, () =>
    apt(["install", "-y", "-qq", "--no-install-recommends", ...names]),
  )
}

function isPresent(what: string): boolean {
  const candidates = what.startsWith("/")
    ? [what]
    : (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, what))
  return candidates.some((path) => {
    try {
      accessSync(path, what.startsWith("/") ? constants.R_OK : constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

function apt(args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" }
    const child = spawn("apt-get", args, { env, stdio: ["ignore", "pipe", "pipe"] })
    let tail = ""
    const keep = (chunk: Buffer): void => {
      tail = (tail + chunk.toString()).slice(-4_000)
    }
    child.stdout.on("data", keep)
    child.stderr.on("data", keep)
    child.once("error", reject)
    child.once("close", (code) => (code === 0 ? resolve() : reject(new Error(`apt-get ${args[0]} failed:\n${tail}`))))
  })
}
