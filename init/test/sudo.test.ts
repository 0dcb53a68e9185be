import { connect } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { encode, Init, isRoot, type Json, type Result } from "./client.ts"

describe.skipIf(!isRoot)("sudo (needs root)", () => {
  let init: Init
  beforeAll(async () => void (init = await Init.start()))
  afterAll(() => init[Symbol.asyncDispose]())

  const sudo = (args: string, more: Json = {}): Promise<Result> =>
    init.sh(`sudo() { ${init.program} --sudo "$@"; }; ${args}`, {
      env: { WARREN_SUDO_SOCKET: init.sudoSocket },
      ...more,
    })

  it("is root inside, with the list of capabilities and no more", async () => {
    const { out } = await sudo(
      "id -u; sudo sh -c 'id -u; id -g; grep -E \"^(Cap(Eff|Bnd)|NoNew)\" /proc/self/status; ls /proc/self/fd'",
    )
    expect(out).toBe("1000\n0\n0\nCapEff:\t00000000800405fb\nCapBnd:\t00000000800405fb\nNoNewPrivs:\t1\n0\n1\n2\n3\n")
  })

  it("passes input, output, directory and exit code", async () => {
    const result = await sudo(
      "cd /usr; echo in | sudo sh -c 'pwd; cat; echo err >&2; exit 41'; echo $?; sudo sh -c 'kill -9 $$'; echo $?",
    )
    expect(result.out).toBe("/usr\nin\n41\n137\n")
    expect(result.err).toBe("err\n")
  })

  it("has an environment of its own", async () => {
    const { out } = await sudo("FOO=1 LANG=C.UTF-8 SUDO_UID=7 sudo A=b env | sort")
    expect(out).toMatch(/^A=b$/m)
    expect(out).toMatch(/^HOME=\/root$/m)
    expect(out).toMatch(/^LANG=C.UTF-8$/m)
    expect(out).toMatch(/^SUDO_UID=1000$/m)
    expect(out).toMatch(/^SUDO_USER=/m)
    expect(out).toMatch(/^USER=root$/m)
    expect(out).not.toMatch(/^FOO=/m)
    expect((await sudo("FOO=1 sudo -E env")).out).toMatch(/^FOO=1$/m)
  })

  it("understands its options", async () => {
    expect((await sudo("sudo -n -S -H -u daemon id -un; sudo -udaemon -- id -un; sudo --user=daemon id -un")).out).toBe(
      "daemon\n".repeat(3),
    )
    expect(
      (await sudo("sudo -s 'echo $0 && id -u'", { env: { SHELL: "/bin/sh", WARREN_SUDO_SOCKET: init.sudoSocket } }))
        .out,
    ).toBe("/bin/sh\n0\n")
    expect((await sudo("sudo -i pwd")).out).toBe("/root\n")
    expect((await sudo("sudo -v; echo $?; sudo -k; echo $?; sudo; echo $?; sudo --nope; echo $?")).out).toBe(
      "0\n0\n1\n1\n",
    )
    expect((await sudo("sudo no-such-program; echo $?; sudo -u no-such-user true; echo $?")).out).toBe("127\n1\n")
    expect((await sudo("sudo -u 65533 id -u")).out).toBe("65533\n") // run by root there is no uid of init's own to protect
  })

  it("passes signals on, and dies with its caller", async () => {
    const script = 'trap "echo got; exit 5" TERM; echo up; while :; do sleep 0.02; done'
    using traps = init.open({
      op: "spawn",
      argv: [init.program, "--sudo", "sh", "-c", script],
      env: { WARREN_SUDO_SOCKET: init.sudoSocket },
    })
    await traps.until("up")
    const end = await traps.send({ op: "signal", name: "SIGTERM" }).all()
    expect(end.out).toBe("got\n")
    expect(end.last).toMatchObject({ code: 5 })
    const wire = init.open({
      op: "spawn",
      argv: [init.program, "--sudo", "sleep", "4242"],
      env: { WARREN_SUDO_SOCKET: init.sudoSocket },
    })
    await wire.event()
    const count = async (): Promise<string> =>
      (await init.sh("ps -eo args= | grep -c '^sleep 4242' || true")).out.trim()
    await init.settle(count, (n) => n === "1")
    wire.socket.destroy()
    await init.settle(count, (n) => n === "0")
  })

  it("has a terminal when the caller has one", async () => {
    using wire = init.open({
      op: "spawn",
      argv: [init.program, "--sudo", "sh", "-c", "tty; stty size; read x; echo got $x; id -u; exit 3"],
      env: { WARREN_SUDO_SOCKET: init.sudoSocket },
      pty: { cols: 99, rows: 44 },
    })
    await wire.until("44 99")
    wire.bytes("hello\n")
    const result = await wire.all()
    expect(result.out).toMatch(/got hello\r\n0\r\n/)
    expect(result.last).toMatchObject({ code: 3 })
  })

  it("mixes a pipe and a terminal", async () => {
    const { out } = await init.call({
      op: "spawn",
      argv: ["sh", "-c", `echo piped | ${init.program} --sudo sh -c 'cat; [ -t 0 ] || echo in; [ -t 1 ] && echo out'`],
      env: { WARREN_SUDO_SOCKET: init.sudoSocket },
      pty: { cols: 80, rows: 24 },
    })
    expect(out).toBe("piped\r\nin\r\nout\r\n")
  })

  it("answers nonsense with a fault and stays", async () => {
    const attempts = [
      encode('{"op":"hello"}'), // the host's operations are not for the sandbox
      encode('{"op":"spawn","argv":["id"]}'),
      encode('{"op":"sudo","argv":["id"]}'), // no descriptors
      encode("{"),
      Buffer.from([0, 0, 0, 0]),
      Buffer.from([255, 255, 255, 255]),
      Buffer.from([0, 0]),
    ]
    for (const bytes of attempts) {
      const answer = await new Promise<string>((resolve) => {
        let text = ""
        const socket = connect(init.sudoSocket, () => socket.end(bytes))
        socket.on("data", (chunk) => (text += chunk.toString()))
        socket.on("close", () => resolve(text))
        socket.on("error", () => {})
      })
      if (bytes.length > 2) expect(answer).toContain('"fault"')
      expect(answer).not.toContain('"ok"')
    }
    // More silent connections than it keeps: those over the limit are turned away, and time takes the rest.
    const sockets = Array.from({ length: 80 }, () => connect(init.sudoSocket).on("error", () => {}))
    await Promise.all(sockets.slice(64).map((socket) => new Promise((resolve) => socket.on("close", resolve).resume())))
    expect((await init.call({ op: "hello" })).last).toMatchObject({ ev: "ok" })
    for (const socket of sockets) socket.destroy()
    await init.settle(
      () => sudo("sudo id -u"),
      (result) => result.out === "0\n",
    )
  })

  it("does not exist in profile strict", async () => {
    await using strict = await Init.start({ profile: "strict" })
    const result = await strict.call({
      op: "spawn",
      argv: [strict.program, "--sudo", "id"],
      env: { WARREN_SUDO_SOCKET: strict.sudoSocket },
    })
    expect(result.last).toMatchObject({ code: 1 })
    expect(result.err).toContain("not available")
  })
})
