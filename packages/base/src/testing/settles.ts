/** Waits until a value stays the same over many turns of the event loop, and says which. */
export async function settles<T>(read: () => T): Promise<T> {
  let last = read()
  for (let same = 0; same < 200; same++) {
    await new Promise(setImmediate)
    if (read() !== last) same = 0
    last = read()
  }
  return last
}
