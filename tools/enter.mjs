// The way in for every npm script. Plain JavaScript, because on a fresh machine nothing that reads TypeScript is there
// yet: installs what the lock file names if it is not what is installed, then runs the TypeScript command.
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync, writeFileSync } from "node:fs"

const [major, minor] = process.versions.node.split(".").map(Number)
if (major < 20 || (major === 20 && minor < 20)) {
  console.error(`Warren needs Node 20.20 or newer; this is ${process.versions.node}.`)
  process.exit(1)
}

const root = new URL("..", import.meta.url)
process.chdir(root.pathname)
const stamp = new URL("node_modules/.warren-lock", root)
const wanted = createHash("sha256")
  .update(readFileSync(new URL("package-lock.json", root)))
  .digest("hex")
if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== wanted) {
  console.log("Installing dependencies (npm ci) …")
  const started = Date.now()
  const { status } = spawnSync("npm", ["ci", "--loglevel=error", "--progress=false"], { stdio: "inherit" })
  if (status !== 0) process.exit(status ?? 1)
  writeFileSync(stamp, wanted)
  console.log(`Dependencies installed in ${((Date.now() - started) / 1000).toFixed(1)} s.`)
}

const [command = "start", ...rest] = process.argv.slice(2)
process.argv = [process.argv[0], command, ...rest]
const { register } = await import("tsx/esm/api")
register()
await import(`./${command}.ts`)
