/** What Warren itself keeps in a session, at addresses of its own; a tunnel of the same name is there in its place. */
export const builtIns = ["vscode", "vnc", "ttyd"] as const
export type BuiltIn = (typeof builtIns)[number]

/** Those that speak over a WebSocket alone. A person who comes there is shown this view of Warren's own page. */
const views: Readonly<Partial<Record<BuiltIn, string>>> = { vnc: "desktop", ttyd: "terminal" }

export function builtInAt(target: string): BuiltIn | undefined {
  return builtIns.find((name) => name === target)
}

export function viewOf(builtIn: BuiltIn | undefined): string | undefined {
  return builtIn === undefined ? undefined : views[builtIn]
}
