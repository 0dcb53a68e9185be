/** Says what is going on when it takes longer than a second, on a terminal and in a log alike. */
export async function step<T>(what: string, work: () => Promise<T>): Promise<T> {
  const started = Date.now()
  let isSaid = false
  const seconds = (): string => `${((Date.now() - started) / 1000).toFixed(1)} s`
  const timer = setInterval(() => {
    console.log(isSaid ? `  … ${what}, ${seconds()}` : `${what} …`)
    isSaid = true
    timer.refresh()
  }, 1_000)
  try {
    const result = await work()
    if (isSaid) console.log(`  ${what}: done in ${seconds()}`)
    return result
  } finally {
    clearInterval(timer)
  }
}
