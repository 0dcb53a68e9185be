import { refuseDebuggers } from "@warren/base/debugger.ts"
import { Terminal } from "./terminal/terminal.ts"
import { runCli } from "./cli.ts"

refuseDebuggers()
const programs = process.env["WARREN_PROGRAMS"] || import.meta.dirname
// Ends at once: a terminal that is still open, or a stream nobody closed, must not hold the shell's prompt back.
process.exit(await runCli(process.argv.slice(2), new Terminal(process), programs))
