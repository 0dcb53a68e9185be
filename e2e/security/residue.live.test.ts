import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Scope } from "@warren/base/scope.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Probe } from "../probes/probe.ts"
import { dist, Home } from "../runner/home.ts"
import { lastingLeaks } from "../runner/machine.ts"
import { Runner } from "../runner/runner.ts"
import { record } from "./results.ts"

/** WARREN_CLAIMS=1000 for the long form. */
const claims = Number(process.env["WARREN_CLAIMS"] ?? 20)
const pool = { WARREN_POOL_LEAST: "4", WARREN_POOL_MB: "64" }
const program = "/home/user/.probe"
/** In two parts wherever it is looked for, so that whoever looks does not find themselves. */
const mark = ["RESI", "DUE"] as const
const places = "/workspace /home/user /tmp /var/tmp /dev/shm"
const clean = "queues 0\nsemaphores 0\nsegments 0\nabstract 0\nlistening 0\nmemory 0\n"

/** Everywhere a program inside can look: files, processes, their environment, mounts. As root, who sees most. */
const search = `printf '%s%s' ${mark.join(" ")} > /tmp/.words
grep -rslaF -f /tmp/.words ${places} /root /run /etc /opt /srv /var/log /var/spool /home 2>/dev/null | grep -v '^/tmp/.words$'
for p in /proc/[0-9]*; do
  grep -qsaF -f /tmp/.words $p/cmdline $p/environ $p/comm $p/maps && echo $p
done
cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a '^OWNER=' | grep -vx "OWNER=$OWNER"
grep -aF -f /tmp/.words /proc/self/mountinfo /proc/net/unix /proc/sysvipc/*
rm /tmp/.words; true`

/** All of them again, with the mark in: files, links, attributes, history, programs that stay. */
const plant = (word: string): string => `for d in ${places}; do
  echo ${word} > $d/${word}; mkdir -p $d/.${word}/deep; ln -sf ${word} $d/link-${word}; echo ${word} > $d/.${word}/deep/file
done
echo "export X=${word}" >> ~/.bashrc; echo ${word} >> ~/.bash_history; git config --global user.name ${word}
sudo sh -c 'echo ${word} > /etc/${word}; echo ${word} > /root/${word}; echo ${word} >> /etc/profile; mkdir -p /opt/${word}'
setsid nohup sh -c 'read x < /dev/zero; : ${word}' > /dev/null 2>&1 &
X=${word} setsid nohup sleep 10000 > /dev/null 2>&1 &
${program} --plant ${word}`

/** What sandboxes stand on, and run. */
function layers(home: Home): string {
  const files = execFileSync("find", [home.path, "-path", "*host-image*", "-type", "f", "-size", "-1M"]).toString()
  const sums = files.trim().split("\n").filter(Boolean).toSorted().map(sum)
  return [...sums, sum(join(dist, "warren-init"))].join("\n")
}

const sum = (path: string): string => `${createHash("sha256").update(readFileSync(path)).digest("hex")} ${path}`

describe.skipIf(process.getuid?.() !== 0)("a sandbox that waited in the pool", () => {
  const scope = new Scope()
  let home: Home
  let probe: Probe
  let runner: Runner

  beforeAll(async () => {
    probe = scope.use(await Probe.open())
    home = scope.use(new Home())
    runner = scope.use(await Runner.start(home, pool))
  })
  afterAll(() => scope.close())

  async function bring(id: string): Promise<void> {
    await using writing = await runner.talk.open("file.write", { session: id, path: program })
    await writing.write(readFileSync(probe.path))
    writing.send({ op: "eof" })
    await writing.next()
    await runner.talk.run(id, `chmod 755 ${program}`)
  }

  /** What is found by somebody who has just got it. */
  async function found(id: string): Promise<string> {
    const { talk } = runner
    const [files, rest] = [await talk.run(id, search, { user: "root" }), await talk.run(id, `${program} --residue`)]
    const lists = [
      (await talk.call("process.list", { session: id })).processes.filter(({ isRunning }) => isRunning),
      (await talk.call("shell.list", { session: id })).shells,
      (await talk.call("terminal.list", { session: id })).terminals,
      (await talk.call("session.denials", { id })).denials,
    ]
    return (
      files.text +
      rest.text +
      lists
        .flat()
        .map((one) => `${JSON.stringify(one)}\n`)
        .join("")
    )
  }

  it(`has nothing of whoever had one before, ${claims} times`, { timeout: 120_000 + claims * 5_000 }, async () => {
    const { talk } = runner
    const before = layers(home)
    const begun = performance.now()
    const sources = { pool: 0, cold: 0 }
    const ready = async (): Promise<number> => (await talk.call("pool.list", {})).pools[0]?.ready ?? 0
    for (let n = 0; n < claims; n++) {
      await expect.poll(ready, { timeout: 60_000 }).toBeGreaterThan(0)
      const word = `${mark.join("")}-${n}`
      const { id, acquireSource } = await talk.call("session.create", { env: { OWNER: `owned-${n}` } })
      sources[acquireSource]++
      await bring(id)
      expect(await found(id), `claim ${n}`).toBe(clean)
      const { text, exitCode } = await talk.run(id, plant(word))
      expect({ text, exitCode }, `claim ${n}`).toEqual({ text: "planted\n", exitCode: 0 })
      if (n === 0) expect((await found(id)).split("\n").length).toBeGreaterThan(20)
      await talk.call("session.delete", { id })
    }
    const seconds = (performance.now() - begun) / 1_000
    console.log(
      `residue: ${claims} claims in ${seconds.toFixed(0)} s, ${sources.pool} from the pool, ${sources.cold} cold`,
    )
    expect(sources.pool).toBeGreaterThanOrEqual(claims * 0.9)
    expect(layers(home)).toBe(before)
    expect(await lastingLeaks(home)).toEqual([])
    record("residue", { cases: claims, fromPool: sources.pool, seconds: Math.round(seconds) })
  })
})
