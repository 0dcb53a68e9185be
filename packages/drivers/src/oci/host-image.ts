import { chmod, chown, cp, lstat, readFile, readlink, rename, rm, symlink, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { errnoOf } from "@warren/base/fault.ts"
import { ensureFolder } from "@warren/base/folder.ts"
import type { Image } from "../sandbox-spec.ts"
import { accountFiles } from "./accounts.ts"
import { copyAptSettings } from "./apt-settings.ts"

/** What programs in `/usr` expect to find in `/etc`, and what holds no secret. Everything else of `/etc` stays outside. */
const etcCopied = [
  "adduser.conf",
  "alternatives",
  "apt/keyrings",
  "apt/preferences.d",
  "apt/trusted.gpg",
  "apt/trusted.gpg.d",
  "bash.bashrc",
  "ca-certificates",
  "ca-certificates.conf",
  "debconf.conf",
  "debian_version",
  "default/locale",
  "default/useradd",
  "deluser.conf",
  "environment.d",
  "fonts",
  "gai.conf",
  "host.conf",
  "inputrc",
  "java-17-openjdk",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "locale.alias",
  "localtime",
  "login.defs",
  "lsb-release",
  "magic",
  "magic.mime",
  "mime.types",
  "nsswitch.conf",
  "os-release",
  "pam.conf",
  "perl",
  "profile.d",
  "protocols",
  "python3",
  "python3.11",
  "rpc",
  "services",
  "shells",
  "skel",
  "ssl/certs",
  "ssl/openssl.cnf",
  "terminfo",
  "vim",
]

const etcWritten: Readonly<Record<string, string>> = {
  hosts: "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback",
  hostname: "sandbox",
  "resolv.conf": "",
  profile:
    'export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nif [ "${PS1-}" ] && [ -n "${BASH-}" ] && [ -f /etc/bash.bashrc ]; then . /etc/bash.bashrc; fi',
}

/** A folder with the owner it has inside. */
export interface Folder {
  readonly path: string
  readonly mode: number
  readonly owner: number
}

export const folders: readonly Folder[] = [
  ...["usr", "etc", "var", "opt", "srv", "mnt", "media", "run", "proc", "sys", "dev", "boot"].map((path) => ({
    path,
    mode: 0o755,
    owner: 0,
  })),
  ...["var/lib", "var/cache", "var/log", "var/spool", "run/warren", "run/lock"].map((path) => ({
    path,
    mode: 0o755,
    owner: 0,
  })),
  { path: "home", mode: 0o755, owner: 0 },
  { path: "root", mode: 0o700, owner: 0 },
  { path: "tmp", mode: 0o1777, owner: 0 },
  { path: "var/tmp", mode: 0o1777, owner: 0 },
  { path: "home/user", mode: 0o755, owner: 1000 },
  { path: "workspace", mode: 0o755, owner: 1000 },
]

/** What the host's packages are, as dpkg knows them: they are in the host's `/usr`, so they are here, too. */
const packages = "/var/lib/dpkg"

/** Where apt and debconf keep what they fetch and ask; of the host's own, nothing is taken: answers may be passwords. */
const packageFolders: readonly Folder[] = [packages.slice(1), "var/cache/apt", "var/cache/debconf", "var/lib/apt"].map(
  (path) => ({ path, mode: 0o755, owner: 0 }),
)

/** Names below `/` that lead into `/usr` on a merged-usr system. */
const links = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"]

/**
 * The machine itself as an image: its `/usr` and its list of packages as grafts, and beside them a small layer of our own with a clean
 * `/etc`, an empty home and no trace of the host's users, keys or configuration. Made once into `folder`; nothing is downloaded.
 */
export async function hostImage(folder: string): Promise<Image> {
  if (!(await isThere(folder))) await make(folder)
  const grafted = ["/usr", packages]
  const isGrafted = await Promise.all(grafted.map((path) => isThere(join(folder, path))))
  return {
    layers: [folder],
    grafts: grafted.filter((_, index) => isGrafted[index]).map((path) => ({ from: path, to: path })),
  }
}

async function make(folder: string): Promise<void> {
  const draft = `${folder}.${process.pid}.tmp`
  await rm(draft, { recursive: true, force: true })
  try {
    await fill(draft)
    await rename(draft, folder)
  } catch (failure) {
    await rm(draft, { recursive: true, force: true })
    // Another process was faster; what it made is the same.
    if (!["ENOTEMPTY", "EEXIST"].includes(errnoOf(failure))) throw failure
  }
}

async function fill(root: string): Promise<void> {
  const hasPackages = await isThere(packages)
  for (const { path, mode, owner } of [...folders, ...(hasPackages ? packageFolders : [])]) {
    const at = join(root, path)
    ensureFolder(at)
    await chmod(at, mode)
    if (process.getuid?.() === 0) await chown(at, owner, owner)
  }
  await chmod(root, 0o755)
  for (const name of links) {
    const target = await readlink(`/${name}`).catch(() => undefined)
    if (target) await symlink(target, join(root, name))
  }
  for (const path of etcCopied) await copyEtc(path, root)
  const accounts = accountFiles({ passwd: await readText("/etc/passwd"), group: await readText("/etc/group") })
  for (const [name, text] of Object.entries({ ...etcWritten, ...accounts }))
    await writeFile(join(root, "etc", name), `${text}\n`, { mode: name.endsWith("shadow") ? 0o640 : 0o644 })
  if (hasPackages) await copyAptSettings(join(root, "etc/apt"))
  await symlink("../proc/self/mounts", join(root, "etc/mtab"))
}

async function copyEtc(path: string, root: string): Promise<void> {
  const from = join("/etc", path)
  if (!(await isThere(from))) return
  ensureFolder(dirname(join(root, "etc", path)), 0o755)
  await cp(from, join(root, "etc", path), { recursive: true, verbatimSymlinks: true, force: true })
}

async function readText(path: string): Promise<string> {
  return await readFile(path, "utf8").catch(() => "")
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined
}
