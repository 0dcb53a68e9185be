import type {
  Answer,
  Asked,
  CallName,
  Down,
  FeedName,
  Item,
  Numbered,
  StreamName,
  Up,
} from "@warren/protocol/contract.ts"
import type { Conversation } from "@warren/protocol/conversation.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"

type Table = typeof userPlane

/** The user plane as one request may use it: whoever made it is known, and it ends with the request. */
export interface Plane {
  /** The same, ended by something else as well. */
  until(signal: AbortSignal): Plane
  /** The same, which goes on after the request until something else ends it. */
  beyond(signal: AbortSignal): Plane
  call<K extends CallName<Table>>(name: K, input: Asked<Table, K>): Promise<Answer<Table, K>>
  stream<K extends StreamName<Table>>(
    name: K,
    input: Asked<Table, K>,
  ): Promise<Conversation<Up<Table, K>, Down<Table, K>>>
  feed<K extends FeedName<Table>>(name: K, input: Asked<Table, K>): AsyncIterable<Numbered<Item<Table, K>>>
}

export type Session = Answer<Table, "session.get">
export type Snapshot = Answer<Table, "snapshot.create">
export type FileEntry = Answer<Table, "file.stat">
export type Wishes = Asked<Table, "session.create">
