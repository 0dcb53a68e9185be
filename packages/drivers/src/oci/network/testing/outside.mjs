// What is outside, in a network namespace of its own: servers that tell who asked. UDP packets are kept, and told on request.
import { createSocket } from "node:dgram"
import { createServer } from "node:net"
import { connect } from "node:net"

const heard = []
const udp = createSocket("udp4", (message, from) => heard.push(`${message} from ${from.address}`))
udp.bind(8081)
const dns = createSocket("udp4", (message, from) => dns.send(`answer to ${message}`, from.port, from.address))
dns.bind(53)
createServer((socket) => socket.end(`you are ${socket.remoteAddress?.replace("::ffff:", "")}\n`)).listen(8080)
createServer((socket) => socket.end(`${JSON.stringify(heard)}\n`)).listen(8082)
// "1.2.3.4 80": can that be reached from out here?
createServer((socket) =>
  socket.once("data", (line) => {
    const [host, port] = line.toString().trim().split(" ")
    const attempt = connect({ host, port: Number(port), timeout: 1_000 })
    attempt.on("connect", () => socket.end("reached\n"))
    attempt.on("timeout", () => attempt.destroy(new Error("timeout")))
    attempt.on("error", (failure) => socket.end(`${failure.code ?? failure.message}\n`))
  }),
).listen(8083)
console.log("ready")
