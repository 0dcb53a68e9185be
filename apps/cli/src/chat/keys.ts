/** What a key means while a chat fills the screen. */
export type Key =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "enter" | "erase" | "clear" | "interrupt" | "leave" | "up" | "down" | "end" }

const named: Readonly<Record<string, Exclude<Key, { kind: "text" }>["kind"]>> = {
  "\r": "enter",
  "\n": "enter",
  "\u007f": "erase",
  "\b": "erase",
  "\u0003": "interrupt",
  "\u0004": "leave",
  "\u0015": "clear",
  "\u001b[5~": "up",
  "\u001b[A": "up",
  "\u001b[6~": "down",
  "\u001b[B": "down",
  "\u001b[F": "end",
  "\u001b[4~": "end",
}

// eslint-disable-next-line no-control-regex -- It is about control characters.
const pattern = /\u001b\[[\d;]*[A-Za-z~]|\u001b.?|[\u0000-\u001f\u007f]|[^\u0000-\u001f\u007f]+/gu

/** What was typed, key by key; keys that mean nothing here are left out. */
export function keysOf(typed: string): Key[] {
  return [...typed.matchAll(pattern)].flatMap(([key]): Key[] => {
    const kind = named[key]
    if (kind) return [{ kind }]
    // eslint-disable-next-line no-control-regex -- It is about control characters.
    return /^[\u0000-\u001f\u007f]/.test(key) ? [] : [{ kind: "text", text: key }]
  })
}
