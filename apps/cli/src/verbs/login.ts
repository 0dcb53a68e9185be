import { askControl } from "../control/control.ts"
import { verb } from "../verb.ts"

const lifeMs = 15 * 60_000

export const loginVerb = verb({
  name: "login",
  group: "Warren itself",
  doc: "A link that signs a browser in as you, once, within 15 minutes.",
  examples: ["warren login"],
  flags: {},
  words: {},
  async run(_, desk) {
    const { user } = await askControl(desk, "account.get", {})
    // An invite that has the name of somebody signs that somebody in, whoever made it.
    const { invite, link } = await askControl(desk, "invite.create", { name: user.name, role: user.role, lifeMs })
    await desk.output.show({ link, user: user.name, expiresAt: invite.expiresAt }, () => link)
    desk.output.note("Open it in a browser, once, within 15 minutes. Who has it is you.")
  },
})
