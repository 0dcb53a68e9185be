import type { z } from "zod"

const issuesShown = 3

/** What is wrong with an input, in one line a person can act on. */
export function describeIssues(error: z.ZodError): string {
  const shown = error.issues.slice(0, issuesShown).map((issue) => {
    const where = issue.path.map(String).join(".")
    return where === "" ? issue.message : `${where}: ${issue.message}`
  })
  const more = error.issues.length - shown.length
  return shown.join("; ") + (more > 0 ? `; and ${more} more` : "")
}
