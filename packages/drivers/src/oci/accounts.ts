/** Ids that packages give to their own accounts. Persons begin at 1000. */
const systemMax = 999

const own = {
  passwd: [
    "root:x:0:0:root:/root:/bin/bash",
    "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin",
    "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin",
    "user:x:1000:1000::/home/user:/bin/bash",
    "warren:x:65533:65533::/:/usr/sbin/nologin",
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
  ],
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
  ],
}

/**
 * The account files of an image that has the host's programs. Of the host's accounts, those of its packages come along, without anything
 * but their names, ids and homes: files in `/usr` belong to them, and dpkg stops at a name it does not know. No person, no
 * password, and nobody who could log in.
 */
export function accountFiles(host: { passwd: string; group: string }): Record<string, string> {
  const passwd = merged(
    own.passwd,
    systemLines(host.passwd, ([name, , uid, gid, , home]) => `${name}:x:${uid}:${gid}::${home}:/usr/sbin/nologin`),
  )
  const group = merged(
    own.group,
    systemLines(host.group, ([name, , gid]) => `${name}:x:${gid}:`),
  )
  return {
    passwd: passwd.join("\n"),
    group: group.join("\n"),
    // Nobody has a password; whoever is made inside may be given one.
    shadow: passwd.map((line) => `${nameOf(line)}:*:19000:0:99999:7:::`).join("\n"),
    gshadow: group.map((line) => `${nameOf(line)}:*::`).join("\n"),
  }
}

function systemLines(text: string, line: (fields: readonly string[]) => string): string[] {
  return text
    .split("\n")
    .map((one) => one.split(":"))
    .filter(([name = "", , id = ""]) => /^[a-z_][\w-]*\$?$/i.test(name) && Number(id) > 0 && Number(id) <= systemMax)
    .map(line)
}

/** Ours, and of the others those whose name and id are still free. */
function merged(ours: readonly string[], others: readonly string[]): string[] {
  const taken = new Set(ours.flatMap((line) => [nameOf(line), idOf(line)]))
  return [...ours, ...others.filter((line) => !taken.has(nameOf(line)) && !taken.has(idOf(line)))]
}

function nameOf(line: string): string {
  return line.split(":")[0] ?? ""
}

function idOf(line: string): string {
  return line.split(":")[2] ?? ""
}
