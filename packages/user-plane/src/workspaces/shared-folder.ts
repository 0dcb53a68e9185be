import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"

const run = promisify(execFile)

/** Owner, group and others may read, write and enter: version 2, then tag, rights and no id for each. */
const openToAll = "0x02000000" + ["0100", "0400", "2000"].map((tag) => `${tag}0700ffffffff`).join("")

/**
 * Whatever is made below this folder is open to everybody who can come near, whoever makes it and with whichever umask. Without root
 * each sandbox's user is another id of this machine, and none of them is ours: they could not change each other's files otherwise.
 */
export async function shareBelow(path: string, log: Log): Promise<void> {
  try {
    await run("setfattr", ["-n", "system.posix_acl_default", "-v", openToAll, "--", path])
  } catch (failure) {
    log("warn", "workspace.create", { ok: false, message: messageOf(failure), hint: "apt-get install attr" })
  }
}
