/**
 * Waits, turn by turn of the event loop, until something holds. For what has no event to wait for; a test whose condition
 * never comes is ended by the runner's own limit.
 */
export async function eventually(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate)
}
