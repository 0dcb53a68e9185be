// Runs inside a sandbox: a web server that does what the gateway's tests need, and tells what it has seen.
const { createHash } = require("node:crypto")
const { createServer } = require("node:http")

const seen = { connections: 0, requests: 0, gone: 0, upgrades: 0, waiting: 0 }
const json = (response, body) =>
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body))

const pages = {
  "/seen": (_, response) => json(response, seen),
  "/upload": (request, response) => {
    const hash = createHash("sha256")
    let bytes = 0
    request.on("data", (piece) => ((bytes += piece.length), hash.update(piece)))
    request.on("end", () => json(response, { bytes, sha256: hash.digest("hex") }))
  },
  "/refuse-upload": (_, response) => response.writeHead(413, { connection: "close" }).end("too large"),
  "/download": (request, response) => {
    const bytes = Number(new URL(request.url, "http://inside").searchParams.get("bytes"))
    const chunk = Buffer.alloc(256 * 1024)
    for (let i = 0; i < chunk.length; i++) chunk[i] = (i * 31) % 251
    response.writeHead(200, { "content-length": bytes })
    let sent = 0
    const more = () => {
      while (sent < bytes) {
        const piece = chunk.subarray(0, Math.min(chunk.length, bytes - sent))
        sent += piece.length
        seen.sent = sent
        if (!response.write(piece)) return response.once("drain", more)
      }
      response.end()
    }
    more()
  },
  "/events": (request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write("data: first\n\n")
    seen.waiting++
    request.socket.once("close", () => seen.gone++)
    pages["/event"] = (_, other) => {
      response.write("data: next\n\n")
      other.end("sent")
    }
  },
  "/hang": (request) => {
    seen.waiting++
    request.socket.once("close", () => seen.gone++)
  },
  "/break": (request, response) => {
    response.writeHead(200, { "content-length": 1000 })
    response.write("only this", () => request.socket.destroy())
  },
  "/trailers": (_, response) => {
    response.writeHead(200, { trailer: "x-sum" })
    response.write("body")
    response.addTrailers({ "x-sum": "42" })
    response.end()
  },
  "/headers": (_, response) => {
    response.writeHead(200, [
      ...[
        "Set-Cookie",
        "gateway_session=stolen; Path=/",
        "Set-Cookie",
        "__Host-Gateway_Session=stolen; Path=/; Secure",
      ],
      ...["Set-Cookie", "mine=1; Path=/app; Domain=warren.localhost; HttpOnly", "Set-Cookie", "other=2"],
      ...[
        "Service-Worker-Allowed",
        "/",
        "Clear-Site-Data",
        '"*"',
        "Strict-Transport-Security",
        "max-age=1",
        "Alt-Svc",
        "x",
      ],
      ...["Access-Control-Allow-Origin", "*", "X-Frame-Options", "DENY", "X-Warren-Woke-Ms", "1"],
      ...["Content-Security-Policy", "script-src 'self'", "Connection", "x-hop", "X-Hop", "1", "X-App", "kept"],
    ])
    response.end("ok")
  },
  "/redirect": (request, response) =>
    response.writeHead(302, { location: new URL(request.url, "http://inside").searchParams.get("to") }).end(),
  "/once": (request, response) => {
    response.once("finish", () => request.socket.destroy())
    response.end("then closed")
  },
}

const server = createServer((request, response) => {
  seen.requests++
  const [path] = request.url.split("?")
  if (pages[path]) return pages[path](request, response)
  const pieces = []
  request.on("data", (piece) => pieces.push(piece))
  request.on("end", () =>
    json(response, {
      method: request.method,
      url: request.url,
      headers: request.rawHeaders,
      body: Buffer.concat(pieces).toString(),
    }),
  )
})
server.on("connection", () => seen.connections++)
server.on("checkContinue", (request, response) => {
  if (request.url === "/refuse-upload") return pages["/refuse-upload"](request, response)
  seen.continued = (seen.continued ?? 0) + 1
  response.writeContinue()
  server.emit("request", request, response)
})
server.on("upgrade", (request, socket, head) => {
  seen.upgrades++
  if (request.url === "/no-socket") return socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nnope")
  const key = `${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  const accept = createHash("sha1").update(key).digest("base64")
  const [protocol] = (request.headers["sec-websocket-protocol"] ?? "").split(",").map((one) => one.trim())
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n` +
      `${protocol ? `Sec-WebSocket-Protocol: ${protocol}\r\n` : ""}X-Seen-Origin: ${request.headers.origin}\r\n\r\n`,
  )
  // Comes back as it came: the gateway has no business with what is in it.
  if (head.length > 0) socket.write(head)
  socket.on("error", () => socket.destroy())
  socket.once("close", () => seen.gone++)
  socket.pipe(socket)
})
server.listen(Number(process.argv[2] ?? 3000), "127.0.0.1", () => console.log("ready"))
