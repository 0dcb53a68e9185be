import { record } from "@warren/base/testing/results.ts"
import fc from "fast-check"
import { expect, it } from "vitest"
import { Simulation, type Happening } from "./simulation.ts"

/** WARREN_SIMULATION_S: for how long histories are played. WARREN_SEED: which ones. */
const seconds = Number(process.env["WARREN_SIMULATION_S"] ?? 4)
const given = process.env["WARREN_SEED"]
const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given)

type Asked = Extract<Happening, { readonly which: number }>["what"]

const which = fc.nat({ max: 3 })
const isWaited = fc.boolean()
const asked = ["create", "write", "use", "snapshot", "fork", "pause", "resume", "hibernate"] as const
const rarely = ["restore", "stop", "delete", "rollback", "die"] as const
const happening = fc.oneof(
  { weight: 8, arbitrary: fc.record({ what: fc.constantFrom(...asked), which, isWaited }) },
  { weight: 5, arbitrary: fc.record({ what: fc.constantFrom(...rarely), which, isWaited }) },
  { weight: 3, arbitrary: fc.record({ what: fc.constant("kill" as const), passes: fc.nat({ max: 12 }) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant("trip" as const), passes: fc.integer({ min: 1, max: 8 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      what: fc.constantFrom("fail" as const, "full" as const),
      calls: fc.integer({ min: 1, max: 5 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      what: fc.constantFrom("advance" as const, "jump" as const),
      ms: fc.integer({ min: 1, max: 20_000 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ what: "restart" as const }) },
) satisfies fc.Arbitrary<Happening>

it(
  `keeps what it acknowledged and owns what there is, in every history (seed ${seed})`,
  { timeout: seconds * 3_000 + 60_000 },
  async () => {
    let played = 0
    const history = fc.array(happening, { minLength: 3, maxLength: 25 })
    const play = async (happenings: readonly Happening[], number: number): Promise<void> => {
      played++
      await new Simulation(number).play(happenings)
    }
    const property = fc.asyncProperty(history, fc.nat(), play)
    const begun = [performance.now(), process.cpuUsage()] as const
    // In portions, each with a seed of its own: one that is under way is never left to itself.
    for (let portion = 0; performance.now() - begun[0] < seconds * 1_000; portion++)
      await fc.assert(property, { seed: seed + portion, numRuns: 50 })
    const { user, system } = process.cpuUsage(begun[1])
    const [wall, cpu] = [performance.now() - begun[0], (user + system) / 1_000].map((ms) =>
      Math.round((played / ms) * 60_000),
    )
    console.log(`simulation: ${played} histories, seed ${seed}; ${wall} a minute, ${cpu} a minute of a processor`)
    expect(played).toBeGreaterThan(0)
    record("simulated-histories", { cases: played, seed, "per minute of a processor": cpu })
  },
)

it("does not fail a session whose sandbox had died before it was rolled back", async () => {
  const steps = ["create", "snapshot", "die", "rollback"] as const
  await new Simulation(1).play(steps.map((what) => ({ what, which: 0, isWaited: true })))
})

it("starts again when nothing is left but a snapshot", async () => {
  const steps = ["create", "snapshot", "delete"] as const
  const history = steps.map((what) => ({ what, which: 0, isWaited: true }))
  await new Simulation(1).play([...history, { what: "restart" }, { what: "restart" }])
})

/** Each call of a driver that such a step makes, and each write, fails once. */
const failures = [1, 2, 3, 4].flatMap((calls) => (["fail", "full"] as const).map((what) => ({ what, calls })))

it.each(["pause", "resume", "hibernate", "restore", "stop", "delete", "rollback", "fork", "snapshot"] as const)(
  "leaves a session in a state it can go on from when a part of %s fails",
  async (what) => {
    const before = { resume: ["pause"], restore: ["hibernate"], rollback: ["snapshot"] } as const
    for (const failure of failures) {
      const step = (one: Asked): Happening => ({ what: one, which: 0, isWaited: true })
      const rest: Happening = { what: "advance", ms: 20_000 }
      const history = [step("create"), ...(before[what as "resume"] ?? []).map(step), failure, step(what), rest]
      await new Simulation(1).play([...history, { what: "check" }, step("use"), { what: "check" }, step("stop")])
    }
  },
)

it("never gives back a session that is being deleted", async () => {
  const check: Happening = { what: "check" }
  const step = (what: Asked): Happening => ({ what, which: 0, isWaited: true })
  for (const failure of failures) {
    const history = [step("create"), step("stop"), failure, step("delete"), check, step("restore"), step("write")]
    await new Simulation(1).play([...history, check, { what: "restart" }, check])
  }
})
