type Graph = ReadonlyMap<string, readonly string[]>

/** Each knot of files that import one another, once, as the shortest way round from its first file. */
export function cyclesOf(graph: Graph): string[][] {
  const cycles: string[][] = []
  const told = new Set<string>()
  for (const start of [...graph.keys()].toSorted()) {
    if (told.has(start)) continue
    const cycle = wayBack(graph, start)
    if (!cycle) continue
    cycles.push(cycle)
    for (const file of cycle) told.add(file)
  }
  return cycles
}

/** Breadth first, so the first way found is a shortest one. */
function wayBack(graph: Graph, start: string): string[] | undefined {
  const cameFrom = new Map<string, string>()
  const queue = [start]
  for (const file of queue) {
    for (const next of graph.get(file) ?? []) {
      if (next === start) return pathTo(file, start, cameFrom)
      if (cameFrom.has(next)) continue
      cameFrom.set(next, file)
      queue.push(next)
    }
  }
  return undefined
}

function pathTo(end: string, start: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const path = [end]
  for (let file = end; file !== start;) {
    file = cameFrom.get(file) ?? start
    path.unshift(file)
  }
  return path
}
