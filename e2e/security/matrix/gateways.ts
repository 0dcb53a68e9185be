import { Door, ownHost, type Ask } from "../../gateway/door.ts"
import type { People } from "./people.ts"

const port = 8000

/** Everything a gateway answers for a session, and what is asked of it there. */
function placesOf(session: string, publicPort: number): Record<string, { path: string; host?: string }> {
  return {
    "a port by path": { path: `/s/${session}/t/${port}/` },
    "a port by name": { path: "/", host: ownHost(session, port, publicPort) },
    "a tunnel by path": { path: `/s/${session}/t/web/` },
    "a tunnel by name": { path: "/", host: ownHost(session, "web", publicPort) },
    "the editor": { path: `/s/${session}/vscode/` },
    "the desktop": { path: `/s/${session}/vnc/` },
    "the terminal": { path: `/s/${session}/ttyd/` },
    "its tunnels": { path: "/api/tunnels" },
  }
}

export interface GatewaySeen {
  readonly asked: number
  readonly wrong: readonly unknown[]
}

/** Each place × everybody who should not, as a request, as a WebSocket and with the token in the address. */
export async function closedGateway(people: People): Promise<GatewaySeen> {
  const { machine, alice, bob } = people
  const door = new Door(machine.port)
  const { session } = alice.things
  const other = `ses_${alice.things.sandbox.slice(0, 20)}`
  const strangers: Record<string, string | undefined> = {
    nobody: undefined,
    nonsense: "A".repeat(43),
    "her token for the API": alice.token,
    "bob's token for the API": bob.token,
    "bob's gateway token": people.gatewayToken(bob, bob.things.session),
    "bob's, for her session": people.gatewayToken(bob, session),
    "hers, of another session": people.gatewayToken(alice, other),
    "hers, of another port": people.gatewayToken(alice, session, 1),
  }
  const wrong: unknown[] = []
  let asked = 0
  for (const [where, { path, host }] of Object.entries(placesOf(session, machine.port))) {
    for (const [who, token] of Object.entries(strangers)) {
      // That one is for whatever session its token is of.
      if (where === "its tunnels" && (who.startsWith("hers") || who === "bob's gateway token")) continue
      const at = host === undefined ? {} : { host }
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const ways: readonly [string, Ask][] = [
        [path, { ...at, headers }],
        [`${path}?token=${token ?? ""}`, at],
      ]
      for (const [target, ask] of ways) {
        const { status, body } = await door.get(target, ask)
        const { head, socket } = await door.upgrade(target, ask)
        socket.destroy()
        const upgraded = Number(head.split(" ")[1])
        asked += 2
        const isShut = (code: number): boolean => code >= 400 && code < 500
        if (!isShut(status) || !isShut(upgraded) || body.includes(people.canary))
          wrong.push([where, who, status, upgraded])
      }
    }
  }
  return { asked, wrong }
}
