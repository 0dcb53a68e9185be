#!/usr/bin/env node
// What `npx warren` runs: the program that `npm start` and `npm run build` make.
import { existsSync } from "node:fs"

const program = new URL("../../../dist/cli.js", import.meta.url)
if (existsSync(program)) await import(program.href)
else {
  console.error("warren: it is not built yet\n  run `npm start` (or `npm run build`) once in its folder")
  process.exitCode = 8
}
