import { readFileSync } from "node:fs"
import { resolve } from "node:path"

/** Who strikes the failpoints whose names begin so: a chapter of the runner's day, or a test of its own. */
const chapterOf = {
  ...{ boot: "sessions", driver: "sessions", fork: "sessions", once: "sessions", pool: "sessions" },
  ...{ rollback: "sessions", sandbox: "sessions", session: "sessions", snapshot: "sessions" },
  ...{ image: "goods", layer: "goods", secret: "goods", tunnel: "goods", workspace: "goods" },
  ...{ agent: "agent", prompt: "agent", turn: "agent" },
  confine: "confined",
  supervisor: "supervisor",
  process: "launcher",
  ...{ audit: "control", invite: "control", key: "control", request: "control", "sign-in": "control" },
  ...{ token: "control", user: "control" },
} as const

export type ChapterName = (typeof chapterOf)[keyof typeof chapterOf]

/** Made of the sources, and checked to be so: a failpoint that is not there does not exist. */
const page = resolve(import.meta.dirname, "../../docs/reference/failpoints.md")

export function allNames(): string[] {
  return [...readFileSync(page, "utf8").matchAll(/^\| `([^`]+)` \|/gm)].map(([, name = ""]) => name)
}

/** The chapter whose business a failpoint is. */
export function ownerOf(name: string): ChapterName | undefined {
  const beginning = name.slice(0, name.indexOf("/"))
  return Object.entries(chapterOf).find(([one]) => one === beginning)?.[1]
}

export function namesOf(chapter: ChapterName): string[] {
  return allNames().filter((name) => ownerOf(name) === chapter)
}
