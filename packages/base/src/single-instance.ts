import Sqlite from "libsql"
import { Fault } from "./fault.ts"

/**
 * Holds a lock that no second process can take and that the kernel drops when this one dies, however it dies. Node has no
 * flock, but SQLite's exclusive transaction is exactly such a lock.
 */
export function holdLock(path: string, holder: string): Disposable {
  const file = new Sqlite(path)
  try {
    file.exec("PRAGMA busy_timeout = 0")
    file.exec("BEGIN EXCLUSIVE")
  } catch (cause) {
    file.close()
    throw new Fault("conflict", `${holder} is already running`, { cause, subject: `lock:${path}` })
  }
  return { [Symbol.dispose]: () => file.close() }
}
