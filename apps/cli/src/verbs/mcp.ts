import { Fault } from "@warren/base/fault.ts"
import { createLog } from "@warren/base/log.ts"
import { load } from "@warren/base/settings.ts"
import { rpcSocketOf } from "@warren/protocol/places.ts"
import { RunnerLink } from "@warren/protocol/rpc/link.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"
import { flag } from "../arguments/flag.ts"
import { urlIn, urlOf } from "../control/address.ts"
import type { Desk } from "../desk.ts"
import { ensureRunner } from "../lifecycle/start-plan.ts"
import { readHolder } from "../lifecycle/pid-file.ts"
import { settings } from "../settings.ts"
import { verb } from "../verb.ts"

export const mcpVerb = verb({
  name: "mcp",
  group: "Warren itself",
  doc: "Serve MCP on standard input and output, for agents and editors that start it themselves. With --url: pass everything on to a Warren somewhere else, with the token in WARREN_TOKEN.",
  examples: ["warren mcp", "WARREN_TOKEN=wrn_… warren mcp --url https://warren.example"],
  flags: { url: flag.text("URL", "The Warren to ask; the one of this machine unless said (or WARREN_URL does).") },
  words: {},
  async run({ flags }, desk) {
    const { url, token } = load(settings, desk.terminal.env)
    const asked = flags.url ?? (url === "" ? undefined : url)
    return asked === undefined ? serveHere(desk) : passOn(desk, urlIn(asked), token)
  },
})

async function serveHere(desk: Desk): Promise<void> {
  const { home, port: configured } = await desk.place()
  await ensureRunner(desk)
  const port = readHolder(home)?.port ?? configured
  await using link = new RunnerLink(userPlane, rpcSocketOf(home), "mcp")
  const { stdin, stdout, stderr } = desk.terminal
  const { serveStdio } = await import("@warren/mcp/stdio.ts")
  await serveStdio(
    { stdin, stdout },
    {
      plane: link.handlers(),
      log: createLog((line) => stderr.write(line)),
      urlOf: (path) => urlOf(desk.terminal.env, port) + path,
    },
    desk.signal,
  )
}

async function passOn(desk: Desk, url: URL, token: string): Promise<void> {
  if (token === "") throw new Fault("unauthenticated", "a token is missing", { hint: "put one into WARREN_TOKEN" })
  const { stdin, stdout } = desk.terminal
  const { bridge } = await import("@warren/mcp/bridge.ts")
  await bridge({ stdin, stdout, url, token }, desk.signal)
}
