import type { SessionInfo } from "@warren/sdk/session.ts"

/** Whether a session is what somebody looks for: by name, by `label=value`, by its state or its image. */
export function matches({ name, labels, state, image }: SessionInfo, find: string): boolean {
  const words = find.toLowerCase().split(/\s+/).filter(Boolean)
  const about = [name, state, image, ...Object.entries(labels).map(([key, value]) => `${key}=${value}`)]
  return words.every((word) => about.some((one) => one.toLowerCase().includes(word)))
}
