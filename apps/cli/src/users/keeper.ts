import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { promisify } from "node:util"
import { Fault } from "@warren/base/fault.ts"
import { connectUnix } from "@warren/base/unix-socket.ts"
import { launcher } from "@warren/protocol/launcher/launcher.ts"
import { launcherSocketOf, type Machine } from "@warren/protocol/launcher/machine.ts"
import { RpcClient } from "@warren/protocol/rpc/client.ts"

/** Who keeps runners running on this machine. */
export interface Keeper {
  /** Resolves when the runner can be connected to. */
  start(user: string, signal: AbortSignal): Promise<void>
  stop(user: string, signal: AbortSignal): Promise<void>
  /** `running`, `stopped`, …, in a word. */
  state(user: string, signal: AbortSignal): Promise<string>
}

/** systemd, where it is the first process; otherwise Warren's launcher. */
export function keeperOf(machine: Machine): Keeper {
  return existsSync("/run/systemd/system") ? systemd : byLauncher(machine)
}

function byLauncher(machine: Machine): Keeper {
  const ask = async (verb: keyof typeof launcher, user: string, signal: AbortSignal) => {
    await using client = await connect(machine, signal)
    return await client.call(verb, { user }, { signal })
  }
  return {
    start: async (user, signal) => void (await ask("runner.start", user, signal)),
    stop: async (user, signal) => void (await ask("runner.stop", user, signal)),
    state: async (user, signal) => (await ask("runner.status", user, signal)).state,
  }
}

async function connect(machine: Machine, signal: AbortSignal): Promise<RpcClient<typeof launcher>> {
  const socket = await connectUnix(launcherSocketOf(machine), signal).catch((cause: unknown) => {
    signal.throwIfAborted()
    throw new Fault("unavailable", "no launcher is running on this machine", { hint: "sudo warren launcher", cause })
  })
  return new RpcClient(socket, launcher, "cli")
}

const run = promisify(execFile)
const unitOf = (user: string): string => `warren-runner@${user}.service`

const systemd: Keeper = {
  start: (user, signal) => systemctl(["enable", "--now", unitOf(user)], signal),
  stop: (user, signal) => systemctl(["disable", "--now", unitOf(user)], signal),
  async state(user, signal) {
    const asked = ["show", "--property=SubState", "--value", unitOf(user)]
    const { stdout } = await run("systemctl", asked, { signal })
    return stdout.trim()
  },
}

async function systemctl(args: readonly string[], signal: AbortSignal): Promise<void> {
  await run("systemctl", args, { signal }).catch((cause: unknown) => {
    signal.throwIfAborted()
    const said = ((cause as { stderr?: string }).stderr ?? "").trim()
    throw new Fault("unavailable", `systemctl ${args[0]} failed: ${said}`, { cause })
  })
}
