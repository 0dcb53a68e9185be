/** What `git status --porcelain=v2 --branch -z` says. */
export interface GitStatus {
  readonly branch?: string
  readonly commit?: string
  readonly upstream?: string
  readonly ahead?: number
  readonly behind?: number
  /** Paths that are not as they were committed, new ones too. */
  readonly paths: readonly string[]
}

export const statusArguments = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"] as const

export function parseStatus(text: string): GitStatus {
  const tokens = text.split("\0")
  const heads: Record<string, string> = {}
  const paths: string[] = []
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at] ?? ""
    if (token.startsWith("# ")) {
      const [name = "", ...value] = token.slice(2).split(" ")
      heads[name] = value.join(" ")
    } else if (token.startsWith("? ")) paths.push(token.slice(2))
    else if (/^[12u] /.test(token)) {
      // What was renamed is followed by what it was called.
      if (token.startsWith("2 ")) at++
      paths.push(pathOf(token))
    }
  }
  const [, ahead, behind] = /^\+(\d+) -(\d+)$/.exec(heads["branch.ab"] ?? "") ?? []
  const { "branch.head": branch, "branch.oid": commit, "branch.upstream": upstream } = heads
  return {
    ...(branch === undefined || branch === "(detached)" ? {} : { branch }),
    ...(commit === undefined || commit === "(initial)" ? {} : { commit }),
    ...(upstream === undefined ? {} : { upstream }),
    ...(ahead === undefined ? {} : { ahead: Number(ahead), behind: Number(behind) }),
    paths,
  }
}

/** How many fields stand before the path. */
const fields: Readonly<Record<string, number>> = { "1": 8, "2": 9, u: 10 }

function pathOf(token: string): string {
  return token
    .split(" ")
    .slice(fields[token[0] ?? ""] ?? 0)
    .join(" ")
}
