import { staleFiles, writeFiles } from "./reference/files.ts"

const stale = await staleFiles(".")
const isChecking = process.argv.includes("--check")
if (!isChecking) await writeFiles(stale)
for (const path of stale) console.log(isChecking ? `${path} is out of date: npm run generate` : `wrote ${path}`)
if (stale.length === 0) console.log("All generated files are up to date.")
process.exitCode = isChecking && stale.length > 0 ? 1 : 0
