export const devPort = 5173

/** A dev server as many have one: a page whose module listens on a WebSocket, and is told of every change of `~/greeting.txt`. */
export const devServer = `
const { createServer } = require("node:http")
const { createHash } = require("node:crypto")
const { readFileSync } = require("node:fs")
const open = new Set()
const text = () => readFileSync("/home/user/greeting.txt", "utf8").trim()
const files = {
  "/": ["text/html", () => "<h1>" + text() + "</h1><p></p><script type=module src=/hot.js></script>"],
  "/hot.js": ["text/javascript", () => "const s = new WebSocket('ws://' + location.host + '/hot'); let changes = 0;" +
    "s.onopen = () => { document.querySelector('p').textContent = 'connected' };" +
    "s.onmessage = ({ data }) => { document.querySelector('h1').textContent = data; document.querySelector('p').textContent = 'change ' + ++changes }"],
}
const server = createServer((request, answer) => {
  const [type, body] = files[request.url.split("?")[0]] ?? []
  answer.writeHead(type ? 200 : 404, { "content-type": type ?? "text/plain" }).end(body?.() ?? "")
})
server.on("upgrade", (request, socket) => {
  const key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
  socket.write(["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket",
    "Sec-WebSocket-Accept: " + createHash("sha1").update(key).digest("base64"), "", ""].join("\\r\\n"))
  open.add(socket)
  socket.on("error", () => socket.destroy()).on("close", () => open.delete(socket)).resume()
})
let last = text()
setInterval(() => {
  const now = text()
  if (now === last || now === "") return
  last = now
  for (const socket of open) socket.write(Buffer.from([0x81, now.length, ...Buffer.from(now)]))
}, 50)
server.listen(${devPort}, "127.0.0.1", () => console.log("dev server ready"))
`
