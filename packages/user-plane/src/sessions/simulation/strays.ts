import type { SandboxId } from "@warren/drivers/sandbox-spec.ts"
import type { Engine } from "../engine.ts"
import type { World } from "./world.ts"

/** What is there without an owner, and what its owner lacks. `kept`: the snapshots that were acknowledged. */
export function straysOf({ store, sessions, snapshots }: Engine, world: World, kept: Iterable<string>): string[] {
  const ledger = store.sandboxes()
  const records = store.list({ limit: 1_000 }).map(({ record }) => record)
  const awake = new Set(records.filter(({ state }) => state === "running" || state === "paused").map(({ id }) => id))
  const lively = ledger.filter(({ owner }) => owner === "pool" || awake.has(owner as (typeof records)[number]["id"]))
  const running = [...world.boxes].filter(([, { process }]) => process).map(([id]) => id)
  const ids = ledger.map(({ id }) => id)
  const known = [...records.flatMap(({ sandbox }) => sandbox ?? []), ...poolOf(ledger)]
  const listed = snapshots.list({ limit: 200 }).items.map(({ id }) => id)
  const livelyIds = lively.map(({ id }) => id)
  return [
    ...differs("in the table", ids, known),
    ...differs("on disk", [...world.boxes.keys()], ids),
    ...differs("running", running, livelyIds),
    ...differs("a snapshot on disk", [...world.snapshots.keys()], listed),
    ...differs("a holder of images", [...world.holders], [...ids, ...listed]),
    ...[...world.folders].filter((id) => !ids.includes(id)).map((id) => `${id} left its way out`),
    ...[...kept].filter((id) => !listed.some((one) => one === id)).map((id) => `${id} is gone`),
    ...[...sessions.entries]
      .filter(({ live, record }) => !live && awake.has(record.id))
      .map(({ id }) => `${id} is not watched`),
  ]
}

function poolOf(ledger: readonly { readonly id: SandboxId; readonly owner: string }[]): SandboxId[] {
  return ledger.filter(({ owner }) => owner === "pool").map(({ id }) => id)
}

function differs(what: string, is: readonly string[], wanted: readonly string[]): string[] {
  return [
    ...is.filter((one) => !wanted.includes(one)).map((one) => `${one} is ${what} and should not be`),
    ...wanted.filter((one) => !is.includes(one)).map((one) => `${one} is not ${what}`),
  ]
}
