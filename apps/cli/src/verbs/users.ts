import { Fault } from "@warren/base/fault.ts"
import { load } from "@warren/base/settings.ts"
import { UserName } from "@warren/protocol/control/account.ts"
import { machineSettings, type Machine } from "@warren/protocol/launcher/machine.ts"
import { passwdEntryOf } from "@warren/protocol/launcher/passwd.ts"
import { readRecords } from "@warren/protocol/launcher/record.ts"
import { flag } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { controlAddress } from "../control/address.ts"
import type { Desk } from "../desk.ts"
import { settings } from "../settings.ts"
import { table } from "../terminal/table.ts"
import { ControlPlane } from "../users/control-plane.ts"
import { keeperOf } from "../users/keeper.ts"
import { UserLife } from "../users/user-life.ts"
import { ageText } from "../terminal/units.ts"
import { verb } from "../verb.ts"

const name = word.one("NAME", "Of the user, and of their Linux account.")
/** Sockets lie deep below the home of a user, and their paths have room for 107 characters. */
const nameCharsMax = 18
const rangeSize = 65_536

const create = verb({
  name: "user create",
  group: "Warren itself",
  doc: "Make a user of this machine: a Linux account, a runner, and a place in the control plane; all of it or nothing. For root.",
  examples: ["sudo warren user create alice", "sudo warren user create bob --role admin"],
  flags: {
    role: flag.choice(["member", "admin"], "An admin also manages users."),
    shell: flag.text("PATH", "The shell of the account; none that lets anybody in unless said."),
    sandboxes: flag.whole("COUNT", "How many sandboxes have ids of their own at a time; 64 unless said.", {
      min: 1,
      max: 1000,
    }),
  },
  words: { name },
  async run({ flags, words }, desk) {
    const wanted = {
      name: checked(words.name),
      role: flags.role ?? "member",
      shell: flags.shell ?? "/usr/sbin/nologin",
      ids: (flags.sandboxes ?? 64) * rangeSize,
    }
    const record = await usersOf(desk).create(wanted, desk.signal)
    await desk.output.show(record, () => `${record.name} is a user now, as the Linux account ${record.uid}.`)
  },
})

const list = verb({
  name: "user list",
  group: "Warren itself",
  doc: "List the users of this machine. For root.",
  examples: ["sudo warren user list"],
  flags: {},
  words: {},
  async run(_, desk) {
    const machine = machineOf(desk)
    const keeper = keeperOf(machine)
    const found = await Promise.all(
      readRecords(machine).map(async (record) => {
        const runner = await keeper.state(record.name, desk.signal).catch(() => "unknown")
        return { ...record, runner }
      }),
    )
    await desk.output.show(found, () =>
      table(
        ["NAME", "UID", "STATE", "RUNNER", "AGE"],
        found.map((one) => [one.name, String(one.uid), one.state, one.runner, ageText(one.createdAt)]),
      ),
    )
  },
})

const disable = verb({
  name: "user disable",
  group: "Warren itself",
  doc: "Keep a user out: tokens and sign-ins stop working, runner and sandboxes end. Their files stay. For root.",
  examples: ["sudo warren user disable alice"],
  flags: {},
  words: { name },
  async run({ words }, desk) {
    const record = await usersOf(desk).setDisabled(checked(words.name), true, desk.signal)
    await desk.output.show(record, () => `${record.name} is disabled.`)
  },
})

const enable = verb({
  name: "user enable",
  group: "Warren itself",
  doc: "Let a disabled user in again. For root.",
  examples: ["sudo warren user enable alice"],
  flags: {},
  words: { name },
  async run({ words }, desk) {
    const record = await usersOf(desk).setDisabled(checked(words.name), false, desk.signal)
    await desk.output.show(record, () => `${record.name} is enabled.`)
  },
})

const remove = verb({
  name: "user delete",
  group: "Warren itself",
  doc: "Delete a user with sandboxes, files and Linux account. For root.",
  examples: ["sudo warren user delete alice --yes"],
  flags: { yes: flag.on("Really: nothing of it can be brought back.") },
  words: { name },
  async run({ flags, words }, desk) {
    const asked = checked(words.name)
    if (!flags.yes) {
      throw new Fault("invalid", `everything ${asked} has would be deleted`, {
        hint: `if that is meant: warren user delete ${asked} --yes`,
      })
    }
    await usersOf(desk).delete(asked, desk.signal)
    await desk.output.show({ name: asked, isDeleted: true }, () => `${asked} is deleted.`)
  },
})

export const userVerbs = [create, list, disable, enable, remove]

function usersOf(desk: Desk): UserLife {
  const machine = machineOf(desk)
  const { port } = load(settings, desk.terminal.env)
  const account = passwdEntryOf(machine.controlAccount)
  if (!account) {
    throw new Fault("unavailable", "no control plane has run on this machine", { hint: "sudo warren launcher" })
  }
  const address = controlAddress(desk.terminal.env, port)
  const control = new ControlPlane({ machine: machine.machine, address, uid: account.uid })
  return new UserLife({ machine, keeper: keeperOf(machine), control })
}

function machineOf(desk: Desk): Machine {
  if (process.getuid?.() !== 0) throw new Fault("forbidden", "only root manages users", { hint: "sudo warren user …" })
  return load(machineSettings, desk.terminal.env)
}

function checked(given: string): string {
  if (UserName.safeParse(given).success && given.length <= nameCharsMax && /^[a-z]/.test(given)) return given
  throw new Fault("invalid", `${JSON.stringify(given)} cannot be a user's name`, {
    hint: `a lower-case letter, then letters, digits, - and _: at most ${nameCharsMax} characters`,
  })
}
