import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { Turns } from "@warren/base/turns.ts"
import type { Plane } from "../plane.ts"
import type { Sandbox } from "../sandboxes.ts"
import { filled } from "../transfer.ts"
import { javascriptKernel } from "./javascript-kernel.ts"
import { pythonKernel } from "./python-kernel.ts"
import { interpreterServer } from "./server-program.ts"

export const interpreterPort = 49_999
const folder = "/tmp/.warren-interpreter"
const files = { "server.py": interpreterServer, "kernel.py": pythonKernel, "kernel.cjs": javascriptKernel } as const
const tries = 200
const tryMs = 50

/** The program that runs code in a sandbox. It is put there, and started, when somebody first wants it. */
export class Interpreter {
  readonly #clock: Clock
  readonly #turns = new Turns()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves when it answers. Of many who want it at once, one starts it. */
  async ensure(plane: Plane, { session, settings }: Sandbox): Promise<void> {
    if (await isOpen(plane, session.id)) return
    await this.#turns.take(session.id, async () => {
      if (await isOpen(plane, session.id)) return
      for (const [name, text] of Object.entries(files)) await place(plane, session.id, `${folder}/${name}`, text)
      const argv = ["/bin/sh", "-c", `exec python3 ${folder}/server.py ${interpreterPort} >/dev/null 2>${folder}/log`]
      const cwd = settings.cwd ?? "/home/user"
      await plane.call("process.spawn", { session: session.id, argv, cwd, replayBytes: 0 })
      await this.#answers(plane, session.id)
    })
  }

  async #answers(plane: Plane, session: string): Promise<void> {
    for (let at = 0; at < tries; at++) {
      if (await isOpen(plane, session)) return
      await this.#clock.sleep(tryMs)
    }
    throw new Fault("unavailable", "the sandbox runs no code", { hint: "its template needs python3" })
  }
}

async function isOpen(plane: Plane, session: string): Promise<boolean> {
  try {
    await using _ = await plane.stream("port.connect", { session, port: interpreterPort })
    return true
  } catch (thrown) {
    if (Fault.from(thrown).code === "unavailable") return false
    throw thrown
  }
}

async function place(plane: Plane, session: string, path: string, text: string): Promise<void> {
  await filled(await plane.stream("file.write", { session, path }), [Buffer.from(text)])
}
