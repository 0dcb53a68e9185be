import { once } from "node:events"
import { chmod, mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { connect, createServer, type Server, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { buffer } from "node:stream/consumers"
import { freePort } from "@warren/base/testing/free-port.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Init, isRoot } from "./client.ts"

const connectionsMax = 256

/** Forked by init, with init's own command line. */
async function forwarders(init: Init): Promise<number[]> {
  const pids = (await readdir("/proc")).map(Number).filter(Number.isInteger)
  const stats = await Promise.all(
    pids.map(async (pid) => ({ pid, stat: await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "") })),
  )
  const parent = init.child.pid
  return stats.filter(({ stat }) => stat.includes(`(forward) `) && stat.includes(` ${parent} `)).map(({ pid }) => pid)
}

describe.each(["release", "sanitize"] as const)("a forwarded port (%s)", (variant) => {
  let folder: string, path: string, port: number, init: Init
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "wf-"))
    await chmod(folder, 0o755)
    path = join(folder, "proxy.sock")
    port = await freePort()
    init = await Init.start({ variant, forwards: [`${port}:${path}`] })
  })
  afterAll(async () => {
    await init[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  const open = (host = "127.0.0.1"): Socket => {
    const socket = connect({ host, port, allowHalfOpen: true })
    socket.on("error", () => {})
    return socket
  }
  /** Somebody at the other end, for as long as a test. */
  const serve = async (each: (socket: Socket) => void): Promise<Server & AsyncDisposable> => {
    const sockets = new Set<Socket>()
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket)
      socket.on("error", () => {})
      each(socket)
    }).listen(path)
    await once(server, "listening")
    await chmod(path, 0o666)
    const close = async (): Promise<void> => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, "close")
    }
    return Object.assign(server, { [Symbol.asyncDispose]: close })
  }

  it("costs no process before it is used, and is reset when nobody listens", async () => {
    expect(await forwarders(init)).toEqual([])
    for (let i = 0; i < 3; i++) {
      const socket = open()
      const [failure] = (await once(socket, "error")) as [NodeJS.ErrnoException]
      expect(failure.code).toBe("ECONNRESET")
    }
    expect(await forwarders(init)).toHaveLength(1)
  })

  it("passes bytes and half-closes, both ways, over 127.0.0.1 and ::1", async () => {
    await using _ = await serve((socket) => {
      socket.write("hello ")
      // Answers only after the end of the question: the half-close must have come through.
      let question = ""
      socket.on("data", (chunk: Buffer) => (question += chunk.toString()))
      socket.on("end", () => socket.end(`you said ${question}`))
    })
    for (const host of ["127.0.0.1", "::1"]) {
      const socket = open(host)
      socket.end("abc")
      expect((await buffer(socket)).toString()).toBe("hello you said abc")
    }
  })

  it("delivers the answer of somebody who does not listen to the end", async () => {
    await using _ = await serve((socket) => {
      // What is never read makes the end an error for the other side.
      socket.pause().write("403", () => setTimeout(() => socket.destroy(), 20))
    })
    for (let i = 0; i < 10; i++) {
      const socket = open()
      socket.write(Buffer.alloc(100_000))
      expect((await buffer(socket)).toString()).toBe("403")
    }
  })

  it("carries much, exactly, in both directions at once", async () => {
    await using _ = await serve((socket) => socket.pipe(socket))
    const sent = Buffer.alloc(20_000_000, "0123456789")
    const answers = await Promise.all(
      [0, 1, 2].map(() => {
        const socket = open()
        socket.end(sent)
        return buffer(socket)
      }),
    )
    for (const answer of answers) expect(answer.equals(sent)).toBe(true)
  })

  it("holds back a sender that nobody reads", async () => {
    let sent = 0
    await using _ = await serve((socket) => {
      const more = (): void => {
        while (sent < 100_000_000 && socket.write(Buffer.alloc(65_536))) sent += 65_536
      }
      socket.on("drain", more)
      more()
    })
    const socket = open()
    socket.pause()
    await once(socket, "connect")
    let before = -1
    while (sent !== before) {
      before = sent
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    expect(sent).toBeLessThan(50_000_000)
    socket.destroy()
  })

  it("lets the other side know when one is gone", async () => {
    const closed: Promise<unknown>[] = []
    await using _ = await serve((socket) => {
      closed.push(once(socket, "close"))
      socket.on("end", () => socket.end())
      socket.resume()
    })
    const sockets = Array.from({ length: 20 }, () => open())
    for (const socket of sockets) await once(socket, "connect")
    await expect.poll(() => closed.length).toBe(20)
    for (const [index, socket] of sockets.entries()) {
      if (index % 2) socket.destroy()
      else socket.resetAndDestroy()
    }
    await Promise.all(closed)
  })

  it(`carries ${connectionsMax} connections at once, and more one after the other`, async () => {
    let most = 0
    const sockets = new Set<Socket>()
    await using _ = await serve((socket) => {
      sockets.add(socket)
      socket.on("close", () => sockets.delete(socket))
      most = Math.max(most, sockets.size)
      socket.pipe(socket)
    })
    const asked = Array.from({ length: connectionsMax + 44 }, () => open())
    await expect.poll(() => sockets.size).toBe(connectionsMax)
    for (const socket of asked) socket.end("x")
    for (const answer of await Promise.all(asked.map((socket) => buffer(socket)))) expect(answer.toString()).toBe("x")
    expect(most).toBe(connectionsMax)
  })

  it("comes back when its forwarder dies", async () => {
    await using _ = await serve((socket) => socket.pipe(socket))
    for (let i = 0; i < 3; i++) {
      const socket = open()
      socket.end("x")
      expect((await buffer(socket)).toString()).toBe("x")
      for (const pid of await forwarders(init)) process.kill(pid, "SIGKILL")
      await expect.poll(() => forwarders(init)).toEqual([])
    }
  })
})

describe("what --forward takes", () => {
  it.each(["3128", "0:/x", "65536:/x", "3128:x", ":/x", `1:/${"x".repeat(110)}`])("not %s", async (forward) => {
    await expect(Init.start({ forwards: [forward] })).rejects.toThrow(/--forward/)
  })
})

describe.skipIf(!isRoot)("the forwarder (needs root)", () => {
  const sandbox = [
    "unshare",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "--net",
    "sh",
    "-c",
    'ip link set lo up && exec "$@"',
    "sh",
  ]
  const caps = ["setuid", "setgid", "kill", "setpcap"].map((cap) => `+${cap}`).join(",")
  const drop = ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", `--inh-caps=-all,${caps}`]
  const ambient = [`--ambient-caps=-all,${caps}`, `--bounding-set=-all,${caps}`]

  it("has a uid of its own, no capabilities, and cannot be touched from inside", async () => {
    const forwards = ["3128:/nonexistent/proxy.sock"]
    await using init = await Init.start({ forwards, prefix: [...sandbox, ...drop, ...ambient] })
    // The kernel takes the connection before the forwarder is there to be looked at.
    const script = `exec 2>/dev/null; bash -c '</dev/tcp/127.0.0.1/3128'
      until grep -q ^Name:.forward /proc/[0-9]*/status; do sleep 0.01; done
      for p in /proc/[0-9]*; do
        if grep -q ^Name:.forward $p/status; then
          grep -E "^(Uid|Gid|Groups|Cap|NoNew)" $p/status; kill -9 \${p#/proc/} || echo untouched; ls $p/fd || echo unseen
        fi
      done`
    const { out } = await init.sh(script)
    const zero = "0000000000000000"
    expect(out.split("\n")).toEqual([
      "Uid:\t65532\t65532\t65532\t65532",
      "Gid:\t65532\t65532\t65532\t65532",
      "Groups:\t ",
      ...["Inh", "Prm", "Eff", "Bnd", "Amb"].map((set) => `Cap${set}:\t${zero}`),
      "NoNewPrivs:\t1",
      "untouched",
      "unseen",
      "",
    ])
    expect((await init.call({ op: "spawn", argv: ["true"], user: "65532" })).last).toMatchObject({ code: "forbidden" })
  })
})
