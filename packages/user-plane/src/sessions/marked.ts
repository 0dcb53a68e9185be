/** What Warren itself keeps running in a sandbox. The sandbox says so: a runner that starts again finds it there. */
export interface Mark {
  readonly kind: "terminal" | "service"
  readonly name: string
}

/** The words of a program with a mark. init tells them, cut when they are long: so the mark is before the script. */
export function marked({ kind, name }: Mark, script: string, ...args: readonly string[]): string[] {
  return ["sh", "-c", 'script=$1; shift; eval "$script"', `warren-${kind}:${name}`, script, ...args]
}

export function markOf(argv: readonly string[]): Mark | undefined {
  const [, kind, name] = /^warren-(terminal|service):([a-z0-9-]{1,32})$/.exec(argv[3] ?? "") ?? []
  return kind === undefined || name === undefined ? undefined : { kind: kind as Mark["kind"], name }
}
