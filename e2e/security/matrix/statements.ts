import { createPrivateKey, generateKeyPairSync } from "node:crypto"
import { readFileSync } from "node:fs"
import { connect } from "node:net"
import { isStream } from "@warren/protocol/contract.ts"
import { StatementSigner, statementLimits } from "@warren/protocol/statement.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"
import type { People } from "./people.ts"

const batch = 200

interface Attempt {
  readonly call: string
  readonly what: string
  readonly statement: string | undefined
}

/** Every call of the user plane with every statement that is not one for it, at the socket alice's runner has for the control plane. */
export async function refusedStatements(people: People): Promise<{ asked: number; letIn: unknown[] }> {
  const attempts = Object.entries(userPlane).flatMap(([call, { scope }]) => wrongFor(people, call, scope))
  const letIn: unknown[] = []
  const plain = attempts.filter(({ call }) => !isStream(userPlane[call as keyof typeof userPlane]))
  for (let at = 0; at < plain.length; at += batch)
    letIn.push(...(await ask(people, plain.slice(at, at + batch), "call")))
  const streams = attempts.filter((one) => !plain.includes(one))
  for (const one of streams) letIn.push(...(await ask(people, [one], "open")))
  return { asked: attempts.length, letIn }
}

function wrongFor({ machine, alice, bob }: People, call: string, scope: string): Attempt[] {
  const key = createPrivateKey(readFileSync(machine.at("machine", "control", "statement.key")))
  const own = generateKeyPairSync("ed25519").privateKey
  const { session } = alice.things
  const by = (signing: typeof key, now: number) => new StatementSigner(signing, () => now)
  const right = { user: alice.name, call, scope, session }
  const now = Date.now()
  const statements: Record<string, string | undefined> = {
    none: undefined,
    nonsense: "nonsense",
    "signed by somebody else": by(own, now).sign(right),
    "for bob": by(key, now).sign({ ...right, user: bob.name }),
    "for another call": by(key, now).sign({ ...right, call: call === "session.get" ? "session.list" : "session.get" }),
    "for another session": by(key, now).sign({ ...right, session: bob.things.session }),
    "for another scope": by(key, now).sign({ ...right, scope: scope === "exec" ? "ports" : "exec" }),
    "of yesterday": by(key, now - 24 * 3600_000).sign(right),
    "for longer than any": by(key, now + 10 * statementLimits.lifeMs).sign(right),
  }
  return Object.entries(statements).map(([what, statement]) => ({ call, what, statement }))
}

/** Those that were answered with anything but `forbidden`. */
async function ask(
  { machine, alice }: People,
  attempts: readonly Attempt[],
  verb: "call" | "open",
): Promise<unknown[]> {
  const { session, workspace } = alice.things
  const socket = connect(machine.at("run", alice.name, "control.sock"))
  const input = { id: session, session, name: workspace, path: "/etc/hostname", cmd: "id", sql: "SELECT 1" }
  socket.write(frame({ hello: { version: 1, name: "nosy" } }))
  for (const [at, { call, statement }] of attempts.entries())
    socket.write(frame({ id: at + 1, [verb]: call, in: input, statement }))
  const answers = new Map<number, string>()
  let rest = Buffer.alloc(0)
  for await (const chunk of socket) {
    rest = Buffer.concat([rest, chunk as Buffer])
    for (let length = lengthOf(rest); length !== undefined; length = lengthOf(rest)) {
      note(answers, rest.subarray(4, 4 + length))
      rest = rest.subarray(4 + length)
    }
    if (answers.size === attempts.length) break
  }
  socket.destroy()
  return attempts.flatMap(({ call, what }, at) => {
    const told = answers.get(at + 1) ?? "nothing"
    return told === "forbidden" ? [] : [[call, what, told]]
  })
}

function note(answers: Map<number, string>, body: Buffer): void {
  const said = JSON.parse(body.toString()) as { id?: number; fault?: { code: string } }
  if (said.id !== undefined && !answers.has(said.id))
    answers.set(said.id, said.fault?.code ?? body.toString().slice(0, 200))
}

function lengthOf(bytes: Buffer): number | undefined {
  const length = bytes.length >= 4 ? bytes.readUInt32BE(0) : Infinity
  return bytes.length >= 4 + length ? length : undefined
}

function frame(message: object): Buffer {
  const body = Buffer.from(JSON.stringify(message))
  const head = Buffer.alloc(4)
  head.writeUInt32BE(body.length)
  return Buffer.concat([head, body])
}
