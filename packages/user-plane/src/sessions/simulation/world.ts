import type { SandboxId, SnapshotId } from "@warren/drivers/sandbox-spec.ts"

interface Box {
  /** What was written into it. */
  files: string
  /** While its first process lives; resolves `ended`. */
  process?: { isFrozen: boolean; end(): void; readonly ended: Promise<void> } | undefined
  /** A folder without a record was being made when its maker died. */
  isWhole: boolean
}

/** What a machine keeps when a runner dies: sandboxes, what they have written, snapshots, and who holds what. */
export class World {
  readonly boxes = new Map<SandboxId, Box>()
  readonly snapshots = new Map<SnapshotId, string>()
  /** Who uses images and workspaces, and who has a way out. */
  readonly holders = new Set<string>()
  readonly folders = new Set<SandboxId>()

  start(id: SandboxId): void {
    const box = this.boxes.get(id)
    if (!box) return
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => (end = resolve))
    box.process = { isFrozen: false, ended, end }
  }

  /** Its first process ends, whoever wanted it. */
  end(id: SandboxId): void {
    const box = this.boxes.get(id)
    box?.process?.end()
    if (box) box.process = undefined
  }
}

/** Thrown by everything once the runner is dead: nothing it does any more has an effect. */
export class Dead extends Error {
  override readonly name = "Dead"
}

/** One runner's time in a world: until it is struck. */
export class Life {
  readonly world: World
  readonly #random: () => number
  isOver = false
  /** Driver calls until one fails; 0: none does. */
  failsIn = 0

  constructor(world: World, random: () => number) {
    this.world = world
    this.#random = random
  }

  check(): void {
    if (this.isOver) throw new Dead("the runner is dead")
  }

  /** Takes a moment, so that others come in between. */
  async moment(): Promise<void> {
    for (let hops = 1 + Math.floor(this.#random() * 3); hops > 0; hops--) await Promise.resolve()
    this.check()
  }
}
