import { ownerOf, type ChapterName } from "./names.ts"
import type { Strike } from "./trial.ts"

export interface Case {
  readonly chapter: ChapterName
  readonly strikes: readonly Strike[]
}

/** How often each name is passed in a chapter that nothing happens to. */
export type Passes = ReadonlyMap<ChapterName, ReadonlyMap<string, number>>

/** Passed by the next runner while it brings into order what the last one left: some only then, where there is something. */
export const recovery = ["boot/adopted", "boot/settled", "boot/swept", "boot/removed", "driver/adopting"]
/** What follows in the same breath cannot fail, so that nothing is there to take it back. */
const cannotFail = new Set(["session/admitted", "session/made", "session/taken", "session/written"])

/** Each name in its chapter: at its first and its last pass, with another death while the next recovers, and as an error. */
export function everything(passes: Passes): Case[] {
  const own = [...passes].flatMap(([chapter, counts]) =>
    [...counts].filter(([name]) => ownerOf(name) === chapter).map(([name, most]) => ({ chapter, name, most })),
  )
  return own.flatMap(({ chapter, name, most }, index) => {
    const again: Strike = { name: recovery[index % recovery.length] as string, pass: 1 }
    const canFail = !name.startsWith("boot/") && !cannotFail.has(name)
    const strikes: Strike[][] = [
      ...[...new Set([1, most])].map((pass) => [{ name, pass }]),
      [{ name, pass: 1 }, again],
      ...(canFail ? [[{ name, pass: 1, deed: "error" as const }]] : []),
    ]
    return strikes.map((some) => ({ chapter, strikes: some }))
  })
}

export function drawn(passes: Passes, howMany: number, random: () => number): Case[] {
  const all = everything(passes)
  return Array.from({ length: howMany }, () => all.splice(Math.floor(random() * all.length), 1)).flat()
}

export function wordsOf(strikes: readonly Strike[]): string {
  return strikes.map(faultOf).join(", then ")
}

/** As a program is told. */
export function faultOf({ name, pass, deed }: Strike): string {
  return [name, pass, ...(deed ? [deed] : [])].join(":")
}
