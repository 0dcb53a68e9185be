import { Fault } from "@warren/base/fault.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import { z } from "zod"
import type { Bench } from "../tool.ts"
import { facts, sessionField, tool } from "../tool.ts"
import { absolute } from "./files.ts"

const lineCharsMax = 400
const searchMs = 60_000
/** More than this of what it finds is not even read. */
const outputBytesMax = 8 * 1024 * 1024

/**
 * Runs inside, with what every image has. What is no text is passed over where grep can tell. Its words: folder, file
 * name, pattern.
 */
const script = `cd "$1" || exit 3
if [ -z "$3" ]; then exec find . -type f -name "$2" -print; fi
grep -I "" /dev/null >/dev/null 2>&1; [ $? -lt 2 ] && only=-I || only=
exec find . -name .git -prune -o -type f -name "$2" -exec grep $only -nHE -e "$3" -- {} +`

export const searchTool = tool({
  name: "search_files",
  title: "Search files",
  doc: "Find lines that match a pattern in the files below a folder, or, without a pattern, files by their name. Go on with `after` when there are more.",
  kind: "reads",
  in: z.object({
    session: sessionField,
    path: z.string().min(1).max(4095).default("/workspace").meta({ description: "The folder to look in." }),
    pattern: z
      .string()
      .max(2_000)
      .default("")
      .meta({ description: "An extended regular expression, as `grep -E` has it." }),
    glob: z
      .string()
      .min(1)
      .max(255)
      .default("*")
      .meta({ description: "Only files with such names.", examples: ["*.ts"] }),
    after: z.int().min(0).default(0).meta({ description: "How many finds to pass over: `next` of the answer before." }),
    limit: z.int().min(1).max(1_000).default(100),
  }),
  async run({ session, path, pattern, glob, after, limit }, bench) {
    const lines = await linesOf(bench, session, ["sh", "-c", script, "sh", absolute(path), glob, pattern])
    const page = lines.slice(after, after + limit)
    const found = page.map((line) => (pattern === "" ? { path: shortened(line) } : matchOf(line)))
    const next = after + page.length
    return facts({ found, all: lines.length, ...(next < lines.length ? { next } : {}) })
  },
})

async function linesOf({ asking }: Bench, session: string, argv: string[]): Promise<string[]> {
  const wishes = { timeoutMs: searchMs, outputBytesMax }
  await using run = await asking.stream("process.exec", { session, argv, ...wishes })
  const [out, errors]: [Buffer[], Buffer[]] = [[], []]
  for (let item = await run.next(); item !== undefined; item = await run.next()) {
    if (item instanceof Chunk) (item.tag === stderr ? errors : out).push(Buffer.from(item.bytes))
    else if (item.ev === "exit") {
      const said = Buffer.concat(errors).toString().slice(0, 500).trim()
      if (item.reason === "timeout") throw new Fault("timeout", `the search took longer than ${searchMs} ms`)
      // That nothing was found, or that a file could not be read, is no failure; that a folder or a pattern is none, is.
      if (item.exitCode === 3 || (out.length === 0 && said !== ""))
        throw new Fault("invalid", said || "it cannot be searched")
    }
  }
  const lines = Buffer.concat(out).toString().split("\n")
  return lines.filter((line) => line !== "").toSorted()
}

const stderr = 3

function matchOf(line: string): { path: string; line: number; text: string } {
  const [, path = line, number = "0", said = ""] = /^(.*?):(\d+):(.*)$/s.exec(line) ?? []
  return { path: shortened(path), line: Number(number), text: said.slice(0, lineCharsMax) }
}

function shortened(path: string): string {
  return path.replace(/^\.\//, "")
}
