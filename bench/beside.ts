import { setTimeout as sleep } from "node:timers/promises"
import { Baseline, type Stranger } from "./baseline.ts"
import type { Context } from "./metric.ts"
import { DockerRival } from "./rivals/docker.ts"
import { programCalled } from "./rivals/dockerd.ts"
import type { Absent, Rival } from "./rivals/rival.ts"
import { StrangeRival } from "./rivals/stranger.ts"
import { WarrenCold, WarrenWarm } from "./rivals/warren.ts"
import { Runner } from "./runner.ts"
import { availableBytes } from "./sandbox-memory.ts"
import { Sandboxes } from "./sandboxes.ts"
import { summarize, type Summary } from "./statistics.ts"

export interface BesideRow {
  readonly name: string
  readonly how: string
  /** From nothing over `true` to nothing, in milliseconds. */
  readonly cycle: Summary
  /** `true` in one that runs, in milliseconds. */
  readonly exec: Summary
  /** Bytes of one that sleeps: what is known to be its own, and how much less the machine has available for each. */
  readonly memory: { readonly count: number; readonly own: number; readonly machine: number }
}

export interface Beside {
  readonly rows: readonly BesideRow[]
  readonly absent: readonly Absent[]
}

interface Plan {
  readonly rounds: number
  readonly warmups: number
  readonly execsPerRound: number
  readonly crowd: number
}

const plans: Readonly<Record<"full" | "quick", Plan>> = {
  full: { rounds: 60, warmups: 5, execsPerRound: 5, crowd: 50 },
  quick: { rounds: 5, warmups: 1, execsPerRound: 2, crowd: 5 },
}
/** With less patience than this for one figure there are fewer of everything. */
const wholePatienceMs = 10_000
/** Long enough for what starting them has freed to be given back. */
const settleMs = 1_000
const strangers: readonly Stranger[] = ["crun", "runc", "bwrap"]

type Step = (done: number, wanted: number) => void

/** Warren and others on the same root in the same run. In every round each has its turn, so that what drifts strikes all alike. */
export async function measureBeside(context: Context, onStep: Step): Promise<Beside> {
  const { rivals, absent } = await gather(context)
  const plan = planOf(context)
  const cycles = rivals.map((): number[] => [])
  const execs = rivals.map((): number[] => [])
  for (const rival of rivals) await rival.start()
  for (let round = -plan.warmups; round < plan.rounds; round++) {
    for (const [index, rival] of rivals.entries()) {
      context.signal.throwIfAborted()
      const ms = await rival.cycle()
      if (round >= 0) cycles[index]?.push(ms)
    }
    for (const [index, rival] of rivals.entries()) {
      const taken = await execsOf(rival, plan.execsPerRound)
      if (round >= 0) execs[index]?.push(...taken)
    }
    onStep(Math.max(0, round + 1), plan.rounds)
  }
  for (const rival of rivals) await rival.stop()
  const rows: BesideRow[] = []
  for (const [index, rival] of rivals.entries()) {
    const memory = await memoryOfCrowd(rival, plan.crowd, context.signal)
    const [cycle, exec] = [summarize(cycles[index] ?? []), summarize(execs[index] ?? [])]
    rows.push({ name: rival.name, how: rival.how, cycle, exec, memory })
  }
  return { rows, absent }
}

function planOf({ isQuick, patienceMs = wholePatienceMs }: Context): Plan {
  const plan = plans[isQuick ? "quick" : "full"]
  const share = Math.min(1, patienceMs / wholePatienceMs)
  return { ...plan, rounds: Math.ceil(plan.rounds * share), crowd: Math.ceil(plan.crowd * share) }
}

async function gather(context: Context): Promise<{ rivals: Rival[]; absent: Absent[] }> {
  const sandboxes = await Sandboxes.open(context)
  const runner = await Runner.start(context, { WARREN_POOL_LEAST: "8" })
  const baseline = await Baseline.start(context, sandboxes)
  const missing = strangers.flatMap((name) => StrangeRival.absent(name) ?? [])
  const there = strangers.filter((name) => missing.every((absent) => absent.name !== name))
  const rivals: Rival[] = [
    new WarrenCold(sandboxes),
    new WarrenWarm(runner),
    ...there.map((name) => new StrangeRival(name, baseline)),
  ]
  const dockerd = programCalled("dockerd")
  if (dockerd === undefined) return { rivals, absent: [...missing, dockerAbsent] }
  rivals.push(await DockerRival.start(context, dockerd, sandboxes.spec()))
  return { rivals, absent: missing }
}

const dockerAbsent: Absent = { name: "docker", why: "not installed: apt-get install --no-install-recommends docker.io" }

async function execsOf(rival: Rival, count: number): Promise<number[]> {
  const taken: number[] = []
  for (let at = 0; at < count; at++) taken.push(await rival.exec())
  return taken
}

async function memoryOfCrowd(rival: Rival, count: number, signal: AbortSignal): Promise<BesideRow["memory"]> {
  await sleep(settleMs)
  const before = availableBytes()
  for (let at = 0; at < count; at++) {
    signal.throwIfAborted()
    await rival.start()
  }
  await sleep(settleMs)
  const machine = (before - availableBytes()) / count
  const own = (await rival.memory()) / count
  await rival.stop()
  return { count, own, machine }
}
