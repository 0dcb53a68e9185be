/** How often a log, where lines cannot be rewritten, hears about it. */
const logEveryMs = 5_000

/** Shows how far a metric is: on a terminal in one line that changes, elsewhere in a line now and then. On stderr, so that the table stays clean. */
export function progressOf(name: string): { step(done: number, wanted: number): void; end(seconds: number): void } {
  const { stderr } = process
  let saidAt = performance.now()
  if (!stderr.isTTY) stderr.write(`measuring ${name} …\n`)
  return {
    step(done, wanted) {
      const now = performance.now()
      if (now - saidAt < (stderr.isTTY ? 100 : logEveryMs)) return
      saidAt = now
      stderr.write(stderr.isTTY ? `\r\u001b[K${name}  ${done}/${wanted}` : `  … ${name}, ${done} of ${wanted}\n`)
    },
    end(seconds) {
      stderr.write(stderr.isTTY ? "\r\u001b[K" : `  ${name} took ${seconds.toFixed(1)} s\n`)
    },
  }
}
