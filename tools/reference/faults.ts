import { faultCodes } from "@warren/base/fault.ts"
import { code, page, table } from "./markdown.ts"

/** What a caller can act on. */
export function faultsPage(): string {
  const rows = Object.entries(faultCodes).map(([name, { status, isRetryable, exitCode }]) => [
    code(name),
    String(status),
    isRetryable ? "yes" : "no",
    String(exitCode),
  ])
  const introduction = `Every failure has one of these codes. Act on the code; read the \`message\`; the \`hint\` says what to do next.`
  return page("Faults", "packages/base/src/fault.ts", [
    introduction,
    table(["code", "HTTP status", "trying again may help", "exit code of the CLI"], rows),
  ])
}
