import { spawn } from "node:child_process"
import type { IncomingMessage, ServerResponse } from "node:http"
import { Loopback } from "../../egress/testing/egress-system.ts"

/** Git's own server program behind HTTP, for whoever has the password. */
export function gitServer(root: string, password: string, seen: string[]): Promise<Loopback> {
  return Loopback.http((request, response) => {
    seen.push(JSON.stringify([request.method, request.url, request.headers]))
    const [, pair = ""] = /^Basic (.+)$/.exec(request.headers.authorization ?? "") ?? []
    if (Buffer.from(pair, "base64").toString() !== `x-access-token:${password}`) {
      return void response.writeHead(401, { "www-authenticate": "Basic" }).end()
    }
    return serve(root, request, response)
  })
}

function serve(root: string, request: IncomingMessage, response: ServerResponse): void {
  const [path = "", query = ""] = (request.url ?? "").split("?")
  const { headers } = request
  const child = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env["PATH"],
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: path,
      QUERY_STRING: query,
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: headers["content-type"] ?? "",
      ...(headers["content-length"] ? { CONTENT_LENGTH: headers["content-length"] } : {}),
      HTTP_CONTENT_ENCODING: headers["content-encoding"] ?? "",
      GIT_PROTOCOL: String(headers["git-protocol"] ?? ""),
      REMOTE_USER: "bot",
      REMOTE_ADDR: "127.0.0.1",
    },
    stdio: ["pipe", "pipe", "ignore"],
  })
  request.pipe(child.stdin).on("error", () => undefined)
  const parts: Buffer[] = []
  child.stdout.on("data", (chunk: Buffer) => parts.push(chunk))
  child.stdout.on("end", () => {
    const output = Buffer.concat(parts)
    const end = output.indexOf("\r\n\r\n")
    const lines = output.subarray(0, end).toString().split("\r\n")
    const pairs = lines.map((line) => line.split(/: */, 2) as [string, string])
    const status = pairs.find(([name]) => name === "Status")?.[1]
    response.writeHead(
      status ? Number.parseInt(status, 10) : 200,
      Object.fromEntries(pairs.filter(([name]) => name !== "Status")),
    )
    response.end(output.subarray(end + 4))
  })
}
