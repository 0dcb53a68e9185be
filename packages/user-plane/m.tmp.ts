import { mkdtempSync, createReadStream, mkdirSync } from "node:fs"
import { execFileSync } from "node:child_process"
import { unpack } from "./src/images/layer/packed.ts"
import { archiveLimits } from "./src/images/limits.ts"
for (const base of ["/dev/shm/m-", "/tmp/m-", "/tmp/m-"]) {
  const t = mkdtempSync(base); mkdirSync(t + "/root")
  const c0 = process.cpuUsage(), s = performance.now()
  await unpack(createReadStream("/tmp/minbase.tar", { highWaterMark: 262144 }), { root: t + "/root", scratch: t, limits: archiveLimits })
  const c = process.cpuUsage(c0)
  console.log(base, "wall", Math.round(performance.now() - s), "user", c.user / 1000, "sys", c.system / 1000)
  const s1 = performance.now(); execFileSync("sync", ["-f", t]); console.log("sync", Math.round(performance.now() - s1))
  const s2 = performance.now(); execFileSync("sh", ["-c", `mkdir ${t}/x; tar -xf /tmp/minbase.tar -C ${t}/x`]); console.log("gnu tar", Math.round(performance.now() - s2))
  execFileSync("rm", ["-rf", t])
}
