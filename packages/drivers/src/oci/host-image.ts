import { chmod, chown, cp, lstat, mkdir, readlink, rename, rm, symlink, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { errnoOf } from "@warren/base/fault.ts"
import type { Image } from "../sandbox-spec.ts"

/** What programs in `/usr` expect to find in `/etc`, and what holds no secret. Everything else of `/etc` stays outside. */
const etcCopied = [
  "alternatives",
  "bash.bashrc",
  "ca-certificates",
  "ca-certificates.conf",
  "debian_version",
  "default/locale",
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
  passwd: [
    "root:x:0:0:root:/root:/bin/bash",
    "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin",
    "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin",
    "user:x:1000:1000::/home/user:/bin/bash",
    "warren:x:65533:65533::/:/usr/sbin/nologin",
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
  ].join("\n"),
  group: [
    "root:x:0:",
    "daemon:x:1:",
    "adm:x:4:",
    "tty:x:5:",
    "mail:x:8:",
    "shadow:x:42:",
    "utmp:x:43:",
    "video:x:44:",
    "staff:x:50:",
    "users:x:100:",
    "user:x:1000:",
    "warren:x:65533:",
    "nogroup:x:65534:",
  ].join("\n"),
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

/** Names below `/` that lead into `/usr` on a merged-usr system. */
const links = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"]

/**
 * The machine itself as an image: its `/usr` as a graft, and beside it a small layer of our own with a clean `/etc`, an empty
 * home and no trace of the host's users, keys or configuration. Made once into `folder`; nothing is downloaded.
 */
export async function hostImage(folder: string): Promise<Image> {
  const image: Image = { layers: [folder], grafts: [{ from: "/usr", to: "/usr" }] }
  if (await isThere(folder)) return image
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
  return image
}

async function fill(root: string): Promise<void> {
  for (const { path, mode, owner } of folders) {
    const at = join(root, path)
    await mkdir(at, { recursive: true })
    await chmod(at, mode)
    if (process.getuid?.() === 0) await chown(at, owner, owner)
  }
  await chmod(root, 0o755)
  for (const name of links) {
    const target = await readlink(`/${name}`).catch(() => undefined)
    if (target) await symlink(target, join(root, name))
  }
  for (const path of etcCopied) await copyEtc(path, root)
  for (const [name, text] of Object.entries(etcWritten))
    await writeFile(join(root, "etc", name), `${text}\n`, { mode: 0o644 })
  await symlink("../proc/self/mounts", join(root, "etc/mtab"))
}

async function copyEtc(path: string, root: string): Promise<void> {
  const from = join("/etc", path)
  if (!(await isThere(from))) return
  await mkdir(dirname(join(root, "etc", path)), { recursive: true, mode: 0o755 })
  await cp(from, join(root, "etc", path), { recursive: true, verbatimSymlinks: true, force: true })
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined
}
