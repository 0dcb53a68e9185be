import { randomBytes } from "node:crypto"
import { connect } from "node:net"
import { expect, test } from "vitest"
import type { CliWorld } from "./world.ts"

/** Ports of a session that are here, too. */
export function ports(world: CliWorld): void {
  const { said, session } = world

  test("a port of a session is here, on loopback, with both ends of a connection", async () => {
    await using _ = await session("served", "--net", "none")
    const server = `use IO::Socket::INET; $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1", LocalPort => 3000) or die;
      while ($c = $s->accept) { local $/; $in = <$c>; print $c "got " . length($in); close $c }`
    await said(
      "exec",
      "served",
      "--",
      "sh",
      "-c",
      `perl -e '${server}' > /dev/null 2>&1 &
      until perl -e 'use IO::Socket::INET; exit !IO::Socket::INET->new("127.0.0.1:3000")'; do sleep 0.05; done`,
    )
    await using running = world.cli.start("forward", "served", "3000:0", "--json")
    await running.until("}")
    const { address } = JSON.parse(running.stdout) as { address: string }
    const [host = "", port = ""] = address.split(":")
    expect(host).toBe("127.0.0.1")
    const socket = connect({ host, port: Number(port), allowHalfOpen: true })
    socket.end(randomBytes(300_000))
    let answer = ""
    for await (const piece of socket) answer += String(piece)
    expect(answer).toBe("got 300000")
    running.child.kill("SIGINT")
    expect((await running.ended).code).toBe(0)
  })

  test("a port that is taken, and one where nobody listens, are said", async () => {
    await using _ = await session("silent")
    const taken = await world.cli.run(["forward", "silent", `3000:${world.home.port}`])
    expect(taken).toMatchObject({ code: 4, stderr: expect.stringMatching(/is taken here/) as string })
    await using running = world.cli.start("forward", "silent", "9:0", "--json")
    await running.until("}")
    const { address } = JSON.parse(running.stdout) as { address: string }
    const socket = connect(Number(address.split(":")[1]), "127.0.0.1")
    socket.on("error", () => undefined)
    await new Promise((done) => socket.once("close", done))
  })
}
