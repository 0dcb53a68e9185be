import { checks } from "./checks.ts"

/** As many as the smallest machine we care about has cores. */
const atOnce = 2
const waiting = [...checks]
const failures: { readonly name: string; readonly output: string }[] = []

async function work(): Promise<void> {
  for (let check = waiting.shift(); check; check = waiting.shift()) {
    const started = performance.now()
    const { ok, output } = await check.run(".").catch((thrown: unknown) => ({ ok: false, output: String(thrown) }))
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    console.log(`${ok ? "ok    " : "FAILED"}  ${check.name.padEnd(16)} ${seconds.padStart(5)} s`)
    if (!ok) failures.push({ name: check.name, output: output.trim() })
  }
}

await Promise.all(Array.from({ length: atOnce }, work))
for (const { name, output } of failures) console.log(`\n── ${name} ──\n${output}`)
process.exitCode = failures.length > 0 ? 1 : 0
