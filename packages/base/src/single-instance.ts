import Sqlite from "libsql"
import { errnoOf, Fault } from "./fault.ts"

/**
 * Holds a lock that no second process can take and that the kernel drops when this one dies, however it dies. Node has no
 * flock, but SQLite's exclusive transaction is exactly such a lock.
 */
export function holdLock(path: string, holder: string): Disposable {
  let file: InstanceType<typeof Sqlite> | undefined
  try {
    file = new Sqlite(path)
    file.exec("PRAGMA busy_timeout = 0")
    file.exec("BEGIN EXCLUSIVE")
  } catch (cause) {
    file?.close()
    throw refusal(path, holder, cause)
  }
  const held = file
  return { [Symbol.dispose]: () => held.close() }
}

function refusal(path: string, holder: string, cause: unknown): Fault {
  const subject = `lock:${path}`
  if (errnoOf(cause) === "SQLITE_BUSY") return new Fault("conflict", `${holder} is already running`, { cause, subject })
  const hint = "check that its folder can be written; a damaged lock file may be removed"
  return new Fault("unavailable", `could not take the lock at ${path}`, { cause, subject, hint })
}
