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
const [command = "start", ...rest] = process.argv.slice(2)
install("", "dependencies")
// Other people's agents, clients and browsers' drivers: large, and of no use to who only wants to run Warren.
if (["test", "check", "bench"].includes(command)) install("e2e/", "what tests run against", "--ignore-scripts")

process.argv = [process.argv[0], command, ...rest]
const { register } = await import("tsx/esm/api")
register()
await import(`./${command}.ts`)

/** Unless what is there is what the lock file names. */
function install(folder, what, ...flags) {
  const stamp = new URL(`${folder}node_modules/.warren-lock`, root)
  const wanted = createHash("sha256")
    .update(readFileSync(new URL(`${folder}package-lock.json`, root)))
    .digest("hex")
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return
  console.log(`Installing ${what} (npm ci) …`)
  const started = Date.now()
  const { status } = spawnSync("npm", ["ci", "--loglevel=error", "--progress=false", ...flags], {
    cwd: new URL(folder || ".", root),
    stdio: "inherit",
  })
  if (status !== 0) process.exit(status ?? 1)
  writeFileSync(stamp, wanted)
  console.log(`Installed ${what} in ${((Date.now() - started) / 1000).toFixed(1)} s.`)
}
