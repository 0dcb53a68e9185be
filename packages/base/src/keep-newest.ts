/** Puts it behind all others. Of more than `max`, those go that were put longest ago. */
export function keepNewest<K, V>(map: Map<K, V>, max: number, key: K, value: V): void {
  map.delete(key)
  map.set(key, value)
  for (const oldest of map.keys()) {
    if (map.size <= max) return
    map.delete(oldest)
  }
}
