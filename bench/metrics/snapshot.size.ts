import { snapshotAt } from "../snapshot-size.ts"

export const metric = snapshotAt("snapshot.size", 1_000)
