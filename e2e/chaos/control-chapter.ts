import { Fault } from "@warren/base/fault.ts"
import type { ControlDoor } from "./control-door.ts"
import type { Chapter, Fact, Step } from "./story.ts"

type ControlFact = Fact<ControlDoor>

/** What an owner does at the control plane: tokens, an invite that becomes a user, and what is written down of it. */
export function controlChapter(p: string): Chapter<ControlDoor> {
  const cast = { token: "", id: "", code: "" }
  const name = `${p}-bob`
  const steps: Step<ControlDoor>[] = [
    {
      name: "token",
      act: async (door) => {
        const made = await door.post("/v1/tokens", { label: p, scopes: ["account:read"] }, { key: `${p}-token` })
        Object.assign(cast, { token: made["token"], id: (made["about"] as { id: string }).id })
        await takeBack(door, "/v1/tokens", (one) => one["label"] === p && one["id"] !== cast.id)
      },
      after: { token: tokens(p, 1), use: opens(() => cast.token, 200) },
      // It was made, and nobody was told what it is: whoever looks at the list takes it back.
      between: { token: tokens(p, 1) },
    },
    {
      name: "the same again",
      act: async (door) => {
        const made = await door.post("/v1/tokens", { label: p, scopes: ["account:read"] }, { key: `${p}-token` })
        if (made["token"] !== cast.token) throw new Error("the same key has made another token")
      },
      isRepeated: true,
      after: { token: tokens(p, 1), use: opens(() => cast.token, 200) },
    },
    {
      name: "invite",
      act: async (door) => {
        await takeBack(door, "/v1/invites", (one) => one["name"] === name)
        cast.code = String((await door.post("/v1/invites", { name }))["code"])
      },
      after: {
        invite: invites(name, 1),
        code: async () => (cast.code === "" ? "nobody was told its code" : undefined),
      },
      between: { invite: invites(name, 1) },
    },
    {
      name: "join",
      act: (door) =>
        door.post("/v1/invites/redeem", { code: cast.code, name, password: `password of ${name}` }, { token: "" }),
      after: { invite: invites(name, 0), user: users(name, 1) },
    },
    {
      name: "sign in",
      act: (door) => door.post("/v1/login/password", { name, password: `password of ${name}` }, { token: "" }),
      after: { signed: users(name, 1) },
    },
    {
      name: "revoke",
      act: (door) => door.delete(`/v1/tokens/${cast.id}`),
      after: { token: tokens(p, 0), use: opens(() => cast.token, 401) },
    },
    {
      name: "another user",
      act: (door) => door.post("/v1/users", { name: `${p}-eve` }),
      after: { eve: users(`${p}-eve`, 1) },
    },
    {
      name: "the other user gone",
      act: (door) => door.delete(`/v1/users/${p}-eve`),
      after: { eve: users(`${p}-eve`, 0) },
    },
    {
      name: "user gone",
      act: (door) => door.delete(`/v1/users/${name}`),
      after: { user: users(name, 0), signed: users(name, 0) },
    },
  ]
  const anything: ControlFact = async () => undefined
  const first = {
    token: tokens(p, 0),
    use: anything,
    invite: invites(name, 0),
    ...{ code: anything, user: users(name, 0), signed: anything, eve: users(`${p}-eve`, 0), begin: beginsAt(1) },
  }
  return { name: "control", first, steps: [...steps, truncated, ...audited()] }
}

/** The log is whole, whatever happened: nothing of it is gone, doubled or in another order. */
function audited(): Step<ControlDoor>[] {
  const isWhole: ControlFact = async (door) => {
    const { isWhole: whole, problem } = await door.get("/v1/audit/verify")
    return whole === true ? undefined : String(problem)
  }
  const act = async (door: ControlDoor): Promise<void> => {
    const words = await isWhole(door)
    if (words !== undefined) throw new Fault("internal", words)
  }
  return [{ name: "audit", act, after: { audit: isWhole } }]
}

/** What is old is forgotten; that it is whole is looked at afterwards. */
const truncated: Step<ControlDoor> = {
  name: "truncate",
  act: (door) => door.post("/v1/audit/truncate", { seq: 2 }),
  after: { begin: beginsAt(3) },
}

function beginsAt(seq: number): ControlFact {
  return async (door) => {
    const [first] = await door.items("/v1/audit?limit=1")
    return first === undefined || first["seq"] === seq ? undefined : `it begins with ${String(first["seq"])}`
  }
}

function tokens(label: string, count: number): ControlFact {
  return async (door) => counted(await door.items("/v1/tokens"), (one) => one["label"] === label, count)
}

/** What was made and never told is of no use to anybody. */
async function takeBack(door: ControlDoor, path: string, isMeant: (one: Record<string, unknown>) => boolean) {
  for (const one of (await door.items(path)).filter(isMeant)) await door.delete(`${path}/${String(one["id"])}`)
}

function invites(name: string, count: number): ControlFact {
  return async (door) => counted(await door.items("/v1/invites"), (one) => one["name"] === name, count)
}

function users(name: string, count: number): ControlFact {
  return async (door) => counted(await door.items("/v1/users?limit=200"), (one) => one["name"] === name, count)
}

function counted(
  items: readonly Record<string, unknown>[],
  isMeant: (one: Record<string, unknown>) => boolean,
  count: number,
): string | undefined {
  const found = items.filter(isMeant).length
  return found === count ? undefined : `there are ${found}, not ${count}`
}

function opens(token: () => string, status: number): ControlFact {
  return async (door) => {
    if (token() === "") return "nobody was told what it is"
    const found = await door.status("/v1/account", token())
    return found === status ? undefined : `it is answered with ${found}`
  }
}
