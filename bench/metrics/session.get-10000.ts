import { amongMany } from "../session-lookup.ts"

/** One of ten thousand sessions, by name. */
export const metric = amongMany("session.get-10000", (runner, number) =>
  runner.call("session.get", { id: `session-${number}` }),
)
