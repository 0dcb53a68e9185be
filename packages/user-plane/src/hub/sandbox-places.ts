import { userInfo } from "node:os"
import type { Bootstrap } from "@warren/protocol/bootstrap.ts"
import { rootOf, SandboxWorkbench } from "../git/sandbox-workbench.ts"
import type { EnvironmentOf } from "../processes/handlers.ts"
import type { Sessions } from "../sessions/sessions.ts"
import type { Use } from "../sessions/use.ts"
import type { Guest, GuestStart, Places, Stay } from "./guest.ts"
import { guidanceEnvironment } from "./provision/guidance-environment.ts"
import { hubSocketPath, SandboxGuest } from "./sandbox-guest.ts"

export interface SandboxPlacesParts {
  readonly sessions: Sessions
  readonly environmentOf: EnvironmentOf
  readonly program: string
  readonly tools: { readonly shell: boolean; readonly browser: boolean }
}

/** Supervisors in the sandboxes of their sessions. */
export class SandboxPlaces implements Places {
  readonly #parts: SandboxPlacesParts

  constructor(parts: SandboxPlacesParts) {
    this.#parts = parts
  }

  async stay(session: string, signal: AbortSignal): Promise<Stay> {
    const use = await this.#parts.sessions.use(session, signal)
    return {
      find: (either) => SandboxGuest.find(use.live.sandbox, either),
      launch: (start, either) => this.#launch(use, start, either),
      bench: new SandboxWorkbench(use, this.#parts.environmentOf),
      [Symbol.dispose]: () => use[Symbol.dispose](),
    }
  }

  isGone(session: string): boolean {
    return this.#stateOf(session) === "gone"
  }

  isAwake(session: string): boolean {
    return this.#stateOf(session) === "running"
  }

  isPaused(session: string): boolean {
    return this.#stateOf(session) === "paused"
  }

  #stateOf(session: string): string {
    try {
      return this.#parts.sessions.get(session).state
    } catch {
      return "gone"
    }
  }

  #launch(use: Use, { spec, token, provisioned }: GuestStart, signal: AbortSignal): Promise<Guest> {
    const { live, record } = use
    const cwd = provisioned.folder ?? rootOf(use)
    const { program, environmentOf, tools } = this.#parts
    const bootstrap: Bootstrap = {
      ...{ userId: userInfo().username, session: record.id, driver: live.plan.driver, workspaceRoot: cwd },
      runtimePolicy: { mounts: [], resources: live.plan.limits, credentialRefs: record.keys.map(({ scope }) => scope) },
      startupStatus: {
        ...{ sidecarAvailable: true, shellAvailable: tools.shell, browserAvailable: tools.browser },
        degradedReasons: [],
      },
      hub: { url: `listen:${hubSocketPath}`, token },
      agent: spec,
    }
    const env = environmentOf(use, guidanceEnvironment(provisioned))
    return SandboxGuest.launch(live.sandbox, { program, env, cwd, bootstrap }, signal)
  }
}
