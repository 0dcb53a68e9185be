/** One thing that can be asked for about files, at a place that is raced for. */
export interface FileVerb {
  readonly name: string
  ask(n: number): { readonly method: string; readonly path: string; readonly body?: string | object }
}

const query = (fields: Readonly<Record<string, string>>): string => new URLSearchParams(fields).toString()

/** Every verb about files of a session. */
export function sessionVerbs(session: string, base: string): FileVerb[] {
  const at = `/v1/sessions/${session}/files`
  const content = (path: string, more: Record<string, string> = {}): string =>
    `${at}/content?${query({ path, ...more })}`
  const door = `${base}/door`
  return [
    { name: "read", ask: () => ({ method: "GET", path: content(`${door}/file`) }) },
    { name: "read a part", ask: () => ({ method: "GET", path: content(`${door}/file`, { offset: "1", limit: "9" }) }) },
    { name: "write", ask: (n) => ({ method: "PUT", path: content(`${door}/file`), body: `inside ${n}` }) },
    {
      name: "append",
      ask: (n) => ({ method: "PUT", path: content(`${door}/file`, { append: "true" }), body: `${n}` }),
    },
    {
      name: "write whole",
      ask: (n) => ({ method: "PUT", path: content(`${door}/w-${n % 9}`, { atomic: "true" }), body: "x" }),
    },
    {
      name: "upload with parents",
      ask: (n) => ({ method: "PUT", path: content(`${door}/p-${n % 9}/q/file`, { parents: "true" }), body: "x" }),
    },
    { name: "list", ask: () => ({ method: "GET", path: `${at}?${query({ path: door, depth: "3" })}` }) },
    {
      name: "stat",
      ask: () => ({ method: "GET", path: `${at}/stat?${query({ path: `${door}/file`, follow: "true" })}` }),
    },
    {
      name: "mark",
      ask: (n) => ({ method: "POST", path: `${at}/metadata`, body: { path: `${door}/file`, metadata: { n: `${n}` } } }),
    },
    {
      name: "mkdir",
      ask: (n) => ({ method: "POST", path: `${at}/folders`, body: { path: `${door}/m-${n % 9}/x`, parents: true } }),
    },
    {
      name: "move out",
      ask: (n) => ({
        method: "POST",
        path: `${at}/move`,
        body: { path: `${door}/file`, to: `${base}/moved-${n % 9}`, overwrite: true },
      }),
    },
    {
      name: "move in",
      ask: (n) => ({
        method: "POST",
        path: `${at}/move`,
        body: { path: `${base}/moved-${n % 9}`, to: `${door}/in-${n % 9}`, overwrite: true },
      }),
    },
    { name: "remove a file", ask: () => ({ method: "DELETE", path: `${at}?${query({ path: `${door}/file` })}` }) },
    {
      name: "remove a folder",
      ask: () => ({ method: "DELETE", path: `${at}?${query({ path: `${door}/sub`, recursive: "true" })}` }),
    },
    {
      name: "watch",
      ask: () => ({
        method: "GET",
        path: `${at}/watch?${query({ path: door, recursive: "true", isAnnounced: "true" })}`,
      }),
    },
    { name: "ask git", ask: () => ({ method: "GET", path: `/v1/sessions/${session}/git?${query({ folder: door })}` }) },
  ]
}

/** Every verb about files of a workspace: these are done outside of the sandbox. */
export function workspaceVerbs(name: string): FileVerb[] {
  const at = `/v1/workspaces/${name}`
  const door = "arena/door"
  const foreign = `/sandkasten/v1/workspaces/${name}/fs`
  return [
    {
      name: "workspace: read",
      ask: () => ({ method: "GET", path: `${at}/content?${query({ path: `${door}/file` })}` }),
    },
    {
      name: "workspace: write",
      ask: (n) => ({ method: "PUT", path: `${at}/content?${query({ path: `${door}/file` })}`, body: `inside ${n}` }),
    },
    {
      name: "workspace: write anew",
      ask: (n) => ({ method: "PUT", path: `${at}/content?${query({ path: `${door}/n-${n % 9}/f` })}`, body: "x" }),
    },
    { name: "workspace: list", ask: () => ({ method: "GET", path: `${at}/files?${query({ path: door })}` }) },
    {
      name: "workspace: list below",
      ask: () => ({ method: "GET", path: `${at}/files?${query({ path: `${door}/sub` })}` }),
    },
    { name: "workspace: stat", ask: () => ({ method: "GET", path: `${at}/stat?${query({ path: `${door}/file` })}` }) },
    {
      name: "workspace: mkdir",
      ask: (n) => ({ method: "POST", path: `${at}/folders`, body: { path: `${door}/m-${n % 9}/x` } }),
    },
    {
      name: "workspace: move out",
      ask: (n) => ({
        method: "POST",
        path: `${at}/move`,
        body: { from: `${door}/file`, to: `moved-${n % 9}`, replace: true },
      }),
    },
    {
      name: "workspace: move in",
      ask: (n) => ({
        method: "POST",
        path: `${at}/move`,
        body: { from: `moved-${n % 9}`, to: `${door}/in-${n % 9}`, replace: true },
      }),
    },
    {
      name: "workspace: remove a file",
      ask: () => ({ method: "DELETE", path: `${at}/files?${query({ path: `${door}/file` })}` }),
    },
    {
      name: "workspace: remove a folder",
      ask: () => ({ method: "DELETE", path: `${at}/files?${query({ path: `${door}/sub`, recursive: "true" })}` }),
    },
    {
      name: "sandkasten: read",
      ask: () => ({ method: "GET", path: `${foreign}/read?${query({ path: `${door}/file` })}` }),
    },
    {
      name: "sandkasten: write",
      ask: (n) => ({ method: "POST", path: `${foreign}/write`, body: { path: `${door}/s-${n % 9}`, text: "x" } }),
    },
    { name: "sandkasten: list", ask: () => ({ method: "GET", path: `${foreign}?${query({ path: door })}` }) },
  ]
}
