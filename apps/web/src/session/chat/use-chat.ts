import { Fault } from "@warren/base/fault.ts"
import { useCallback, useEffect, useMemo, useState } from "react"
import { http, httpOnce } from "../../data/api.ts"
import { keepTrue } from "../../data/follow.ts"
import { Store, useStore } from "../../data/store.ts"
import { after, begin, type ChatState, type Feed, type Message } from "./chat-state.ts"

const firstMessages = 60
const moreMessages = 200
/** What comes within one picture of the screen is drawn together. */
const pictureMs = 16

export interface Conversation {
  readonly state: ChatState | undefined
  readonly fault: Fault | undefined
  /** Reads everything anew: another conversation was begun. */
  again(): void
  /** Brings those before the first one that is there; false when there are none before them. */
  earlier(): Promise<boolean>
}

/** The conversation of a session, live for as long as somebody looks at it. */
export function useChat(session: string): Conversation {
  const store = useMemo(() => ({ of: session, state: new Store<ChatState | undefined>(undefined) }).state, [session])
  const [fault, setFault] = useState<Fault>()
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    const leave = new AbortController()
    setFault(undefined)
    follow(session, store, leave.signal).catch((thrown: unknown) => {
      if (!leave.signal.aborted) setFault(Fault.from(thrown))
    })
    return () => leave.abort()
  }, [session, store, turn])
  const again = useCallback(() => setTurn((count) => count + 1), [])
  const earlier = useCallback(() => readEarlier(store), [store])
  return { state: useStore(store), fault, earlier, again }
}

async function follow(session: string, store: Store<ChatState | undefined>, signal: AbortSignal): Promise<void> {
  const waiting: Feed[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  const draw = (): void => {
    timer = undefined
    const now = performance.now()
    const state = store.value
    if (state) store.set(waiting.splice(0).reduce((known, item) => after(known, item, now), state))
  }
  await keepTrue({
    route: "GET /v1/sessions/{id}/feed",
    input: { id: session },
    signal,
    read: async () => {
      waiting.length = 0
      const state = await readState(session, signal)
      store.set({ ...state, tools: store.value?.tools ?? state.tools })
      return state.agent.feedSeq
    },
    each: ({ item }) => {
      waiting.push(item)
      timer ??= setTimeout(draw, pictureMs)
    },
  }).finally(() => clearTimeout(timer))
}

async function readState(session: string, signal: AbortSignal): Promise<ChatState> {
  const state = begin(await httpOnce.call("GET /v1/sessions/{session}/agent", { session }, { signal }))
  if (state.chatId === undefined) return state
  const { items, hasMore } = await httpOnce.call(
    "GET /v1/chats/{id}/messages",
    { id: state.chatId, limit: firstMessages },
    { signal },
  )
  return { ...state, messages: items, hasEarlier: hasMore }
}

async function readEarlier(store: Store<ChatState | undefined>): Promise<boolean> {
  const { chatId, messages = [], hasEarlier = false } = store.value ?? {}
  const [first] = messages
  if (chatId === undefined || !first || !hasEarlier) return false
  const input = { id: chatId, before: first.seq, limit: moreMessages }
  const page: { items: Message[]; hasMore: boolean } = await http.call("GET /v1/chats/{id}/messages", input)
  const now = store.value
  // Somebody else has brought them meanwhile.
  if (!now || now.messages[0] !== first) return now?.hasEarlier ?? false
  store.set({ ...now, messages: [...page.items, ...now.messages], hasEarlier: page.hasMore })
  return page.hasMore
}
