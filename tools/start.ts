import { resolve } from "node:path"
import { runCli } from "../apps/cli/src/cli.ts"
import { Terminal } from "../apps/cli/src/terminal/terminal.ts"
import { prepare } from "./prepare.ts"

await prepare("start")
process.exit(await runCli(["start", ...process.argv.slice(2)], new Terminal(process), resolve("dist")))
