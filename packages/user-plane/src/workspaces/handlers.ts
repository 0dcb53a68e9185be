import type { Handlers } from "@warren/protocol/contract.ts"
import type { workspaceCalls } from "@warren/protocol/user-plane/workspaces.ts"
import { pageOf } from "../page.ts"
import { WorkspaceDownload, WorkspaceUpload } from "./transfer.ts"
import type { Workspaces } from "./workspaces.ts"

/** What a user plane answers about workspaces. Bytes go another way. */
export function workspaceHandlers(workspaces: Workspaces): Handlers<typeof workspaceCalls> {
  return {
    "workspace.create": ({ name, limitBytes }) => workspaces.create(name, limitBytes),
    "workspace.list": async ({ cursor, limit }) =>
      pageOf(workspaces.list(cursor ?? "", limit + 1), limit, ({ name }) => name),
    "workspace.get": async ({ name }) => workspaces.get(name),
    "workspace.usage": ({ name }) => workspaces.measure(name),
    "workspace.delete": async ({ name, force }) => ({ isDeleted: await workspaces.delete(name, { isForced: force }) }),
    "workspace.files": async ({ name, path, cursor, limit }) =>
      pageOf(await workspaces.files(name).list(path, limit + 1, cursor), limit, (entry) => entry.name),
    "workspace.stat": async ({ name, path }) => workspaces.files(name).stat(path),
    "workspace.mkdir": async ({ name, path }) => workspaces.files(name).mkdir(path),
    "workspace.move": async ({ name, from, to, replace }) => workspaces.files(name).move(from, to, replace),
    "workspace.read": async ({ name, path, offset, limit }) =>
      new WorkspaceDownload(await workspaces.files(name).openRead(path, { offset, limit })),
    "workspace.write": async ({ name, path, mode, ifMatch, ifNew }, { signal }) =>
      new WorkspaceUpload((bytes) => workspaces.files(name).write(path, bytes, { mode, ifMatch, ifNew, signal })),
    "workspace.remove": async ({ name, path, recursive }) => ({
      isRemoved: await workspaces.files(name).remove(path, recursive),
    }),
  }
}
