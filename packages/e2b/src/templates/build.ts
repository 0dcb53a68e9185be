import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { z } from "zod"
import type { Plane, Session, Wishes } from "../plane.ts"
import { allSnapshots, sourceOf } from "./sources.ts"
import { startProgram, writeAbout, type About } from "./start.ts"
import { digestOf, Step, stepText, take, type Site } from "./step.ts"
import { snapshotName, type TemplateName } from "./template-name.ts"

export const Recipe = z.object({
  fromImage: z.string().max(512).optional(),
  fromImageRegistry: z.object({ username: z.string().optional(), password: z.string().optional() }).optional(),
  fromTemplate: z.string().max(300).optional(),
  steps: z.array(Step).max(1_000).default([]),
  startCmd: z.string().optional(),
  readyCmd: z.string().optional(),
  force: z.boolean().optional(),
})
export type Recipe = z.output<typeof Recipe>

/** What a build tells of itself. */
export interface Teller {
  say(text: string, step?: string): void
}

interface BuildParts {
  readonly plane: Plane
  readonly clock: Clock
  readonly teller: Teller
  readonly limits: NonNullable<Wishes["limits"]>
  readonly names: readonly TemplateName[]
}

const cacheMark = "e2bc-"
const cacheNameChars = 40
/** Steps of earlier builds that are kept to go on from. */
const cacheMax = 100

/** Makes a template: a session in which the steps are done, one after the other, and then frozen under its names. */
export async function build(recipe: Recipe, parts: BuildParts): Promise<void> {
  const { plane, clock } = parts
  const ground = await groundOf(recipe, parts)
  const begun = await begin(recipe, ground, parts)
  const { session } = begun
  try {
    const about = await follow(recipe, begun, parts)
    const whole = {
      ...about,
      ...(recipe.startCmd ? { startCmd: recipe.startCmd } : {}),
      ...(recipe.readyCmd ? { readyCmd: recipe.readyCmd } : {}),
    }
    await writeAbout(plane, session.id, whole)
    if (recipe.startCmd || recipe.readyCmd) await startProgram(plane, session.id, whole, clock)
    for (const name of parts.names) await keep(plane, session.id, snapshotName(name))
  } finally {
    await plane.call("session.delete", { id: session.id })
  }
  await thin(plane)
}

interface Begun {
  readonly session: Session
  readonly about: About
  readonly digest: string
  /** Steps that need not be done. */
  readonly done: number
}

interface Ground {
  readonly origin: Pick<Wishes, "image" | "from">
  readonly digest: string
}

/** What the first step stands on. */
async function groundOf(
  { fromImage, fromTemplate, fromImageRegistry }: Recipe,
  { plane, teller }: BuildParts,
): Promise<Ground> {
  const asked = fromTemplate ?? fromImage ?? "base"
  const found = await sourceOf(plane, asked).catch((thrown: unknown) => {
    if (fromImage === undefined || Fault.from(thrown).code !== "not_found") throw thrown
    return undefined
  })
  if (!found) {
    const { username, password } = fromImageRegistry ?? {}
    const who = username === undefined ? {} : { username, password: password ?? "" }
    for await (const { item } of plane.feed("image.pull", { name: asked, ...who })) if (item.text) teller.say(item.text)
  }
  const origin = found?.origin ?? { image: asked }
  return { origin, digest: JSON.stringify(origin) }
}

/** From the last step that was done before, as long as nothing asks for it to be done again. */
async function begin({ steps, force }: Recipe, ground: Ground, { plane, limits }: BuildParts): Promise<Begun> {
  const wishes = { network: { mode: "proxy", access: "all-public" } as const, limits, labels: { e2b: "build" } }
  const known = force ? [] : await allSnapshots(plane)
  let digest = ground.digest
  let last: { from: string; done: number; digest: string } | undefined
  for (const [at, step] of steps.entries()) {
    if (step.force) break
    digest = digestOf(digest, step)
    const found = known.find(({ name }) => name === cacheName(digest))
    if (found) last = { from: found.id, done: at + 1, digest }
  }
  const session = await plane.call("session.create", { ...wishes, ...(last ? { from: last.from } : ground.origin) })
  const about = said(steps.slice(0, last?.done ?? 0))
  return { session, about, digest: last?.digest ?? ground.digest, done: last?.done ?? 0 }
}

/** What steps that were done before have said about those that follow: that is not in their files. */
function said(steps: readonly Step[]): About {
  let about: About = { env: {} }
  for (const { type, args } of steps) {
    const [first = ""] = args
    if (type === "USER") about = { ...about, user: first }
    if (type === "WORKDIR")
      about = { ...about, cwd: first.startsWith("/") ? first : `${about.cwd ?? "/home/user"}/${first}` }
    if (type === "ENV") {
      const pairs = args.flatMap((name, at) => (at % 2 === 0 ? [[name, args[at + 1] ?? ""] as const] : []))
      about = { ...about, env: { ...about.env, ...Object.fromEntries(pairs) } }
    }
  }
  return about
}

async function follow({ steps }: Recipe, begun: Begun, { plane, teller }: BuildParts): Promise<About> {
  let { about, digest } = begun
  for (const [at, step] of steps.entries()) {
    const label = `[${at + 1}/${steps.length}] ${stepText(step)}`
    if (at < begun.done) {
      teller.say(`CACHED ${label}`, String(at + 1))
      continue
    }
    teller.say(label, String(at + 1))
    const site: Site = { plane, session: begun.session.id, about, tell: (text) => teller.say(text, String(at + 1)) }
    about = await take(site, step).catch((thrown: unknown) => {
      throw new StepFailure(String(at + 1), Fault.from(thrown))
    })
    digest = digestOf(digest, step)
    await keep(plane, begun.session.id, cacheName(digest))
  }
  return about
}

/** Which step it was. */
export class StepFailure extends Fault {
  readonly step: string

  constructor(step: string, cause: Fault) {
    super(cause.code, cause.message, { cause })
    this.step = step
  }
}

const cacheName = (digest: string): string => cacheMark + digest.slice(0, cacheNameChars)

/** Under this name there is one: the new one, before the old one goes. */
async function keep(plane: Plane, session: string, name: string): Promise<void> {
  const before = (await allSnapshots(plane)).filter((one) => one.name === name)
  await plane.call("snapshot.create", { session, name })
  for (const { id } of before) await plane.call("snapshot.delete", { id })
}

async function thin(plane: Plane): Promise<void> {
  const kept = (await allSnapshots(plane)).filter(({ name }) => name?.startsWith(cacheMark))
  for (const { id } of kept.slice(cacheMax)) await plane.call("snapshot.delete", { id }).catch(() => undefined)
}
