import { Fault } from "@warren/base/fault.ts"
import type { SessionInfo } from "@warren/sdk/session.ts"
import { useEffect, useMemo } from "react"
import { httpOnce } from "./api.ts"
import { keepTrue } from "./follow.ts"
import { signedOut } from "./query.ts"
import { noteFound, noteLost } from "./connection.ts"
import { Store, useStore } from "./store.ts"

export type Sessions = ReadonlyMap<string, SessionInfo>

const pageSize = 200

/** Every session of the user, live; undefined until they are known. */
export const sessions = new Store<Sessions | undefined>(undefined)

const looks = new Store(0)
/** That they cannot be read, for a reason that waiting does not mend. */
const unread = "sessions"

/** Looks for them at once instead of in a while. */
export function lookAgain(): void {
  looks.set(looks.value + 1)
}

/** Keeps the list true for as long as that user is signed in. */
export function useLiveSessions(userId: string | undefined): void {
  const look = useStore(looks)
  useEffect(() => {
    if (userId === undefined) return
    const leave = new AbortController()
    followSessions(leave.signal).catch((thrown: unknown) => {
      signedOut(thrown)
      if (!leave.signal.aborted) noteLost(unread, Fault.from(thrown))
    })
    return () => {
      leave.abort()
      noteFound(unread)
    }
  }, [userId, look])
  // Whoever signs in next must not see whose they were.
  useEffect(() => () => sessions.set(undefined), [userId])
}

function followSessions(signal: AbortSignal): Promise<void> {
  return keepTrue({
    route: "GET /v1/sessions/events",
    input: {},
    signal,
    read: () => readSessions(signal),
    each: ({ item: { id, session } }) => putSession(id, session),
  })
}

/** How long sessions took to wake, those that this page has seen wake. */
const woke = new Store<ReadonlyMap<string, number>>(new Map())
const waking = new Map<string, number>()

export function useWoke(id: string): number | undefined {
  return useStore(woke).get(id)
}

/** What an answer says is shown before the feed tells it. */
export function putSession(id: string, session: SessionInfo | undefined): void {
  const next = new Map(sessions.value)
  noteWaking(id, session?.state)
  if (session) next.set(id, session)
  else next.delete(id)
  sessions.set(next)
}

async function readSessions(signal: AbortSignal): Promise<number> {
  const found = new Map<string, SessionInfo>()
  let [cursor, seq] = [undefined as string | undefined, undefined as number | undefined]
  do {
    const page = await httpOnce.call("GET /v1/sessions", { limit: pageSize, ...(cursor ? { cursor } : {}) }, { signal })
    for (const session of page.items) found.set(session.id, session)
    // Of the first page: what changes while the others are read is told again.
    seq ??= page.eventSeq ?? 0
    cursor = page.nextCursor
  } while (cursor !== undefined)
  sessions.set(found)
  return seq
}

/** Those last used first; undefined until they are known. */
export function useSessions(): readonly SessionInfo[] | undefined {
  const known = useStore(sessions)
  return useMemo(() => known && [...known.values()].toSorted((a, b) => (a.usedAt < b.usedAt ? 1 : -1)), [known])
}

/** By id or name; undefined when there is none, or while nothing is known. */
export function useSession(which: string): SessionInfo | undefined {
  const known = useStore(sessions)
  return useMemo(
    () => known?.get(which) ?? [...(known?.values() ?? [])].find(({ name }) => name === which),
    [known, which],
  )
}

function noteWaking(id: string, state: SessionInfo["state"] | undefined): void {
  const since = waking.get(id)
  if (state === "restoring" && since === undefined) waking.set(id, performance.now())
  else if (state !== "restoring") waking.delete(id)
  if (state === "running" && since !== undefined) woke.set(new Map(woke.value).set(id, performance.now() - since))
  else if (state === "hibernated" && woke.value.has(id))
    woke.set(new Map([...woke.value].filter(([one]) => one !== id)))
}
