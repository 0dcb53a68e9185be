import { amongMany } from "../session-lookup.ts"

/** A page of fifty of ten thousand sessions, by label. */
export const metric = amongMany("session.list-10000", (runner, number) =>
  runner.call("session.list", { label: `parity=${number % 2}`, limit: 50 }),
)
