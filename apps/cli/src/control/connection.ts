import { X509Certificate } from "node:crypto"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { request, type IncomingMessage } from "node:http"
import { connect, type Socket } from "node:net"
import { text } from "node:stream/consumers"
import { connect as connectTls } from "node:tls"
import { Fault, messageOf } from "@warren/base/fault.ts"

export interface ControlAddress {
  readonly port: number
  /** The file with the certificate it shows; empty: it is not known. */
  readonly certificate: string
  /** The file of whoever has signed it; with both empty it shows none. */
  readonly authority: string
  /** Whom the certificate has to be of, where it is known only by who has signed it. */
  readonly name: string
}

interface Question {
  readonly method: string
  readonly path: string
  readonly token: string
  readonly body?: string
}

/** One request to the control plane on this machine. */
export async function speak(
  where: ControlAddress,
  { method, path, token, body }: Question,
  signal: AbortSignal,
): Promise<{ status: number; text: string }> {
  const socket = await connectControl(where, signal)
  try {
    const host = `localhost:${where.port}`
    const headers = { host, authorization: `Bearer ${token}`, "content-type": "application/json" }
    const asked = request({ method, path, headers, createConnection: () => socket, signal })
    asked.end(body)
    const [answer] = (await once(asked, "response", { signal })) as [IncomingMessage]
    return { status: answer.statusCode ?? 0, text: await text(answer) }
  } finally {
    socket.destroy()
  }
}

/**
 * A connection to the control plane on this machine. With TLS it has to show the very certificate in the file: that says more
 * than who has signed it, and holds for one that nobody has.
 */
async function connectControl(address: ControlAddress, signal: AbortSignal): Promise<Socket> {
  const { port, certificate, authority } = address
  const where = { host: "127.0.0.1", port }
  if (certificate === "" && authority !== "") return connectSigned(address, signal)
  if (certificate === "") {
    const socket = connect(where)
    await opened(socket, "connect", signal)
    return socket
  }
  const wanted = new X509Certificate(readFileSync(certificate)).fingerprint256
  const socket = connectTls({ ...where, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] })
  await opened(socket, "secureConnect", signal)
  if (socket.getPeerX509Certificate()?.fingerprint256 === wanted) return socket
  socket.destroy()
  throw new Fault("unavailable", `what listens on port ${port} shows another certificate than ${certificate}`)
}

async function connectSigned({ port, authority, name }: ControlAddress, signal: AbortSignal): Promise<Socket> {
  const ca = readFileSync(authority)
  const socket = connectTls({ host: "127.0.0.1", port, ca, servername: name, ALPNProtocols: ["http/1.1"] })
  try {
    await opened(socket, "secureConnect", signal)
  } catch (cause) {
    signal.throwIfAborted()
    // Nobody there at all is another matter.
    if (!socket.authorizationError) throw cause
    const said = messageOf(cause)
    throw new Fault("unavailable", `the certificate on port ${port} is not one of ${authority} for ${name}: ${said}`, {
      cause,
    })
  }
  return socket
}

async function opened(socket: Socket, event: string, signal: AbortSignal): Promise<void> {
  try {
    await once(socket, event, { signal })
  } catch (thrown) {
    socket.destroy()
    throw thrown
  }
}
