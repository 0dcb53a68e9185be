import { describeAdoption } from "./conformance/adoption.ts"
import { describeCommands } from "./conformance/commands.ts"
import { describeFiles } from "./conformance/files.ts"
import { describeIsolation } from "./conformance/isolation.ts"
import { describeLife } from "./conformance/life.ts"
import { describeLimits } from "./conformance/limits.ts"
import { describeNumbers } from "./conformance/numbers.ts"
import { describeShellsAndPorts } from "./conformance/shells.ts"
import { describeSnapshots } from "./conformance/snapshots.ts"
import { World, type Subject } from "./conformance/world.ts"

export type { Subject }

/** What every driver promises. A driver that lacks an ability says so in `abilities`; everything else holds for all. */
export function conformance(subject: Subject): void {
  const world = new World(subject)
  describeLife(world)
  describeCommands(world)
  describeIsolation(world)
  describeLimits(world)
  describeFiles(world)
  describeShellsAndPorts(world)
  describeNumbers(world)
  describeSnapshots(world)
  // The last: those before it have the driver that made their sandboxes.
  describeAdoption(world)
}
