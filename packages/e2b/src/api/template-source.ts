import { Fault } from "@warren/base/fault.ts"
import type { Plane, Session, Wishes } from "../plane.ts"
import type { Settings } from "../settings.ts"

/** What a sandbox starts from. */
export interface Source {
  readonly origin: Pick<Wishes, "image" | "from">
  readonly limits: NonNullable<Wishes["limits"]>
  readonly start: Partial<Pick<Settings, "cwd" | "user">>
}

export interface Templates {
  find(plane: Plane, template: string): Promise<Source>
}

/** Names their clients use unasked: the machine's own image stands in where nobody has built one of that name. */
const usual = new Set(["base", "code-interpreter-v1", "desktop", "mcp-gateway"])

export const plainTemplates: Templates = {
  async find(plane, template) {
    const { items } = await plane.call("image.list", {})
    if (items.some(({ names }) => names.includes(template)))
      return { origin: { image: template }, limits: {}, start: {} }
    if (usual.has(template)) return { origin: {}, limits: {}, start: {} }
    throw new Fault("not_found", `template '${template}' not found`)
  },
}

export async function prepared(_plane: Plane, _session: Session, _source: Source): Promise<void> {}
