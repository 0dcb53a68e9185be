import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Handlers } from "@warren/protocol/contract.ts"
import type { browserCalls, serviceCalls } from "@warren/protocol/user-plane/services.ts"
import type { Sessions } from "../sessions/sessions.ts"
import { Cdp } from "./browser/cdp.ts"
import { Page, type Looking } from "./browser/page.ts"
import { Picture } from "./browser/picture.ts"
import type { Installer } from "./installer.ts"
import type { Services } from "./services.ts"

export function serviceHandlers(services: Services, installer: Installer): Handlers<typeof serviceCalls> {
  return {
    "service.install": ({ session, name }, { signal }) => installer.install(session, name, signal),
    "service.start": ({ session, name }, { signal }) => services.start(session, name, signal),
    "service.list": async ({ session }) => ({ services: services.list(session) }),
    "service.stop": async ({ session, name }) => ({ wasRunning: await services.stop(session, name) }),
  }
}

/** Pages as a browser in the session sees them: it reaches what the session reaches, and nothing else. */
export function browserHandlers(services: Services, sessions: Sessions, clock: Clock): Handlers<typeof browserCalls> {
  const look = async <T>(
    session: string,
    looking: Looking,
    signal: AbortSignal,
    work: (page: Page) => Promise<T>,
  ): Promise<T> => {
    using use = await sessions.use(session, signal)
    const { line } = await services.ensure(use, "browser", signal)
    if (!(line instanceof Cdp)) throw new Fault("unavailable", "the browser has ended", { hint: "try again" })
    await using page = await Page.open(line, looking, clock, signal)
    return await work(page)
  }
  return {
    "browser.screenshot": async ({ session, format, isWhole, ...looking }, { signal }) =>
      new Picture(await look(session, looking, signal, (page) => page.picture(format, isWhole))),
    "browser.read": ({ session, charsMax, ...looking }, { signal }) =>
      look(session, looking, signal, (page) => page.read(charsMax)),
  }
}
