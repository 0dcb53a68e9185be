import { Fault } from "@warren/base/fault.ts"
import { tokenScopes } from "@warren/protocol/token-scope.ts"
import type { HttpDoor } from "@warren/mcp/http-door.ts"
import { Hono } from "hono"
import type { Gate } from "../../gate.ts"
import type { Visit } from "../../visit.ts"

interface McpParts {
  readonly mcp: HttpDoor
  /** Every message counts, also one that comes to no call. */
  readonly gate: Gate
  readonly publicUrl: URL
  /** Who is asking; throws when nobody said. */
  known(request: Request): Promise<Visit>
}

const metadataPath = "/.well-known/oauth-protected-resource"

/** MCP over HTTP at `/mcp`, and what it needs, told where clients look for it. */
export function mcpDoor({ mcp, gate, publicUrl, known }: McpParts): Hono {
  const door = new Hono()
  const metadata = {
    resource: `${publicUrl.origin}/mcp`,
    resource_name: "Warren",
    resource_documentation: `${publicUrl.origin}/docs`,
    bearer_methods_supported: ["header"],
    scopes_supported: Object.keys(tokenScopes),
  }
  for (const path of [metadataPath, `${metadataPath}/mcp`]) door.get(path, (c) => c.json(metadata))
  door.on(["GET", "POST", "DELETE"], "/mcp", async (c) => {
    try {
      const visit = await known(c.req.raw)
      gate.count(visit)
      const { user, via, viaId } = visit.who
      return await mcp.answer(c.req.raw, { owner: `${user.id} ${via} ${viaId}`, caller: visit })
    } catch (thrown) {
      if (thrown instanceof Fault && thrown.code === "unauthenticated") {
        c.header("www-authenticate", `Bearer resource_metadata="${publicUrl.origin}${metadataPath}/mcp"`)
      }
      throw thrown
    }
  })
  return door
}
