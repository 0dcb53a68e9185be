import { execFileSync } from "node:child_process"
import { createHash, randomBytes } from "node:crypto"
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { connect } from "node:net"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { CliProgram } from "../apps/cli/src/testing/cli-program.ts"
import { verbs } from "../apps/cli/src/verbs.ts"
import { Installed, type Home } from "./installed.ts"

let installed: Installed
let home: Home
let cli: CliProgram
let folder: TempFolder

beforeAll(async () => {
  installed = await Installed.make()
  home = await installed.home()
  cli = home.cli
  folder = await TempFolder.make()
  expect((await cli.run(["start", "--daemon"])).code).toBe(0)
})

afterAll(async () => {
  await folder[Symbol.asyncDispose]()
  await home[Symbol.asyncDispose]()
  await installed[Symbol.asyncDispose]()
})

/** What it says when it ends well. */
async function said(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await cli.run(args)
  expect(stderr).toBe("")
  expect(code).toBe(0)
  return stdout
}

async function session(name: string, ...flags: string[]): Promise<AsyncDisposable> {
  await said("create", "--name", name, ...flags)
  return { [Symbol.asyncDispose]: async () => void (await cli.run(["rm", name])) }
}

describe("warren run", () => {
  test("runs a command in a session of its own and takes it away", async () => {
    expect(await said("run", "--", "sh", "-c", "echo $((6*7))")).toBe("42\n")
    expect(await said("ls", "-q")).toBe("")
  })

  test("exit codes, signals and both outputs are as with a local command", async () => {
    const { code, stdout, stderr } = await cli.run(["run", "sh", "-c", "echo out; echo err >&2; exit 7"])
    expect({ code, stdout, stderr }).toEqual({ code: 7, stdout: "out\n", stderr: "err\n" })
    expect((await cli.run(["run", "sh", "-c", "kill -SEGV $$"])).code).toBe(139)
    expect((await cli.run(["run", "no-such-program"])).code).toBe(3)
    expect((await cli.run(["run", "--timeout", "300ms", "sleep", "60"])).code).toBe(124)
  })

  test("bytes go in and out unchanged", async () => {
    const bytes = randomBytes(5 * 1024 * 1024)
    await using running = cli.start("run", "cat")
    running.child.stdin?.end(bytes)
    expect((await running.ended).code).toBe(0)
    expect(sha(running.bytes)).toBe(sha(bytes))
  })

  test("Ctrl-C reaches the program; the session goes, too", async () => {
    await using running = cli.start(
      "run",
      "--",
      "sh",
      "-c",
      "trap 'echo caught; exit 5' INT; echo ready; sleep 60 & wait",
    )
    await running.until("ready")
    running.child.kill("SIGINT")
    expect(await running.ended).toMatchObject({ code: 5, stdout: "ready\ncaught\n" })
    expect(await said("ls", "-q")).toBe("")
  })

  test("a program that needs more memory than it may have is explained", async () => {
    const hungry = "exec perl -e '$x = \"a\" x (200*1024*1024); print length $x'"
    const { code, stderr } = await cli.run(["run", "--memory", "64m", "sh", "-c", hungry])
    expect(code).toBe(137)
    expect(stderr).toMatch(/no more memory/)
  })

  test("flags become what the session is", async () => {
    const flags = [
      "--net",
      "none",
      "--memory",
      "100m",
      "--cpus",
      "0.5",
      "-e",
      "A=b c",
      "--label",
      "x=y",
      "--name",
      "shaped",
    ]
    await using _ = await session("shaped", ...flags.slice(0, -2))
    expect(JSON.parse(await said("inspect", "shaped", "--json"))).toMatchObject({
      network: { mode: "none" },
      limits: { memoryBytes: 100 * 2 ** 20, cpus: 0.5 },
      labels: { x: "y" },
      env: ["A"],
    })
    expect(await said("exec", "shaped", "--", "sh", "-c", "echo $A")).toBe("b c\n")
  })
})

describe("on a terminal", () => {
  test("a program has one, with our window and our keys", async () => {
    await using running = cli.startOnTerminal([
      "run",
      "--",
      "sh",
      "-c",
      "tty; stty size; echo T=$TERM; read x; echo got $x",
    ])
    await running.until("T=xterm")
    expect(running.stdout).toMatch(/\/dev\/pts\/\d+\r\n30 100\r\n/)
    running.child.stdin?.write("hello\r")
    await running.until("got hello")
    expect((await running.ended).code).toBe(0)
  })

  test("Ctrl-C is a key for it", async () => {
    await using running = cli.startOnTerminal(["run", "--", "sh", "-c", "echo ready; exec sleep 60"])
    await running.until("ready")
    running.child.stdin?.write("\u0003")
    expect((await running.ended).code).toBe(130)
  })

  test("it hears of a new window size", async () => {
    const fifo = folder.at("resize")
    execFileSync("mkfifo", [fifo])
    const resizing = `(read _ < ${fifo}; stty -F /dev/tty rows 41 cols 97) & `
    const program = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.1; done"
    await using running = cli.startOnTerminal(["run", "--", "bash", "-c", program], `${resizing} true`)
    await running.until("ready")
    writeFileSync(fifo, "now\n")
    await running.until("41 97")
    expect((await running.ended).code).toBe(0)
  })

  test("`shell` is a login shell", async () => {
    await using _ = await session("shelled")
    await using running = cli.startOnTerminal(["shell", "shelled"])
    running.child.stdin?.write("shopt -q login_shell && echo is-$((1+1))-login; exit 9\r")
    await running.until("is-2-login")
    expect((await running.ended).code).toBe(9)
  })
})

describe("sessions", () => {
  test("freeze, sleep, wake, fork and go back", async () => {
    await using _ = await session("life")
    await said("exec", "life", "--", "sh", "-c", "echo one > /tmp/../home/user/file")
    const snapshot = (await said("snapshot", "life")).trim()
    expect(await said("pause", "life")).toBe("life is paused.\n")
    expect(await said("resume", "life")).toBe("life is running.\n")
    await said("exec", "life", "--", "sh", "-c", "echo two > ~/file")
    expect(await said("hibernate", "life")).toBe("life is hibernated.\n")
    expect(await said("exec", "life", "--", "sh", "-c", "cat ~/file")).toBe("two\n")
    const forks = (await said("fork", "life", "2")).trim().split("\n")
    expect(forks).toHaveLength(2)
    expect(await said("rollback", "life", snapshot)).toBe("life is running.\n")
    expect(await said("exec", "life", "--", "sh", "-c", "cat ~/file")).toBe("one\n")
    expect(await said("exec", forks[0] ?? "", "--", "sh", "-c", "cat ~/file")).toBe("two\n")
    expect(await said("stop", "life")).toBe("life is stopped.\n")
    expect((await cli.run(["exec", "life", "true"])).code).toBe(4)
    expect(await said("restore", "life")).toBe("life is running.\n")
    await said("rm", ...forks)
    await said("snapshots", "rm", snapshot)
  })

  test("are shown with what they use and what runs in them", async () => {
    await using _ = await session("seen")
    await said("exec", "seen", "--", "sh", "-c", "sleep 300 > /dev/null 2>&1 &")
    const [stats] = JSON.parse(await said("stats", "--once", "--json")) as { session: string; memoryBytes: number }[]
    expect(stats).toMatchObject({ session: "seen", memoryBytes: expect.any(Number) as number })
    expect(JSON.parse(await said("ls", "--json"))).toMatchObject([{ name: "seen", state: "running" }])
    expect(await said("_complete", "--", "exec", "se")).toBe("seen\n")
  })

  test("go on while Warren is restarted", async () => {
    await using other = await installed.home()
    await other.cli.run(["start", "--daemon"])
    await other.cli.run(["create", "--name", "survivor"])
    const left = ["exec", "survivor", "--", "sh", "-c", "sleep 600 > /dev/null 2>&1 & echo $!"]
    const { stdout: pid } = await other.cli.run(left)
    expect(await other.cli.run(["restart"])).toMatchObject({ code: 0 })
    const look = ["exec", "survivor", "--", "kill", "-0", pid.trim()]
    expect(await other.cli.run(look)).toMatchObject({ code: 0, stderr: "" })
    expect(JSON.parse((await other.cli.run(["status", "--json"])).stdout)).toMatchObject({
      isDaemon: true,
      runner: { found: { adopted: 1 } },
    })
  })
})

describe("cp", () => {
  function tree(name: string): string {
    const path = folder.at(name)
    mkdirSync(`${path}/deep/er`, { recursive: true })
    writeFileSync(`${path}/a file`, "a")
    writeFileSync(`${path}/deep/tool`, "#!/bin/sh\n")
    writeFileSync(`${path}/deep/er/bytes`, randomBytes(700_000))
    writeFileSync(`${path}/empty`, "")
    chmodSync(`${path}/a file`, 0o640)
    chmodSync(`${path}/deep/tool`, 0o755)
    chmodSync(`${path}/deep`, 0o750)
    symlinkSync("../a file", `${path}/deep/link`)
    return path
  }

  const listing = (path: string): string =>
    execFileSync(
      "sh",
      ["-c", "cd \"$0\" && find . -printf '%p %y %m %l\\n' | sort && find . -type f -exec sha256sum {} +| sort", path],
      {
        encoding: "utf8",
      },
    )

  test.each([
    ["a session", "copied:/home/user/tree"],
    ["a workspace", "@shelf:tree"],
  ])("a folder goes into %s and comes back the same: modes, links, bytes", async (_, inside) => {
    await using _session = await session("copied", "--workspace", "shelf")
    const source = tree(`source-${inside.length}`)
    await said("cp", source, inside)
    const back = folder.at(`back-${inside.length}`)
    await said("cp", inside, back)
    expect(listing(back)).toBe(listing(source))
  })

  test("goes into a folder that exists, as cp does, and through pipes", async () => {
    await using _ = await session("piped")
    writeFileSync(folder.at("note"), "note\n")
    await said("cp", folder.at("note"), "piped:/tmp")
    expect(await said("cp", "piped:/tmp/note", "-")).toBe("note\n")
    const { code } = await cli.run(["cp", "-", "piped:/tmp/deep/er/x"], "from a pipe")
    expect(code).toBe(0)
    await said("cp", "piped:/tmp/deep/er/x", folder.path)
    expect(readFileSync(folder.at("x"), "utf8")).toBe("from a pipe")
    expect((await cli.run(["cp", "piped:/none", folder.path])).code).toBe(3)
    expect((await cli.run(["cp", folder.at("none"), "piped:/tmp/"])).code).toBe(3)
  })

  test("what comes out cannot write anywhere else, and nothing becomes setuid", async () => {
    await using _ = await session("hostile")
    const target = folder.at("target")
    mkdirSync(folder.at("victim"))
    const build = (script: string) => said("exec", "hostile", "--", "sh", "-c", `cd ~; ${script}`)
    await build(
      `mkdir box; ln -s ${folder.at("victim")} box/dir; echo x > box/suid; chmod 4755 box/suid; mkfifo box/pipe`,
    )
    const first = await cli.run(["cp", "hostile:/home/user/box", target])
    expect(first).toMatchObject({ code: 0, stderr: "left out: /home/user/box/pipe (fifo)\n" })
    expect(readlinkSync(`${target}/dir`)).toBe(folder.at("victim"))
    expect(lstatSync(`${target}/suid`).mode & 0o7777).toBe(0o755)
    // Now the link is a folder inside; the copy must not follow the link it made here.
    await build("rm box/dir; mkdir box/dir; echo evil > box/dir/file")
    rmSync(`${target}/pipe`, { force: true })
    const again = await cli.run(["cp", "hostile:/home/user/box", folder.path])
    expect(again.code).toBe(0)
    const over = await cli.run(["cp", "hostile:/home/user/box/.", target])
    expect(over.code).toBe(4)
    expect(execFileSync("ls", [folder.at("victim")], { encoding: "utf8" })).toBe("")
  })
})

describe("forward", () => {
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
    await using running = cli.start("forward", "served", "3000:0", "--json")
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
    const taken = await cli.run(["forward", "silent", `3000:${home.port}`])
    expect(taken).toMatchObject({ code: 4, stderr: expect.stringMatching(/is taken here/) as string })
    await using running = cli.start("forward", "silent", "9:0", "--json")
    await running.until("}")
    const { address } = JSON.parse(running.stdout) as { address: string }
    const socket = connect(Number(address.split(":")[1]), "127.0.0.1")
    socket.on("error", () => undefined)
    await new Promise((done) => socket.once("close", done))
  })
})

describe("images, workspaces, secrets, memory", () => {
  /** The smallest tree that has a shell: busybox and what it is linked with. */
  function smallTree(): string {
    const root = folder.at("root")
    const script = `mkdir -p "$0/bin" "$0/opt" && cp /bin/busybox "$0/bin/" && ln -s busybox "$0/bin/sh" && ln -s busybox "$0/bin/cat"
      for library in $(ldd /bin/busybox | grep -o '/[^ ]*' || true); do cp --parents "$library" "$0"; done
      tar -C "$0" -cf "$0.tar" .`
    execFileSync("sh", ["-c", script, root])
    return `${root}.tar`
  }

  test("an image is imported, built upon, used, committed, tagged and removed", async () => {
    await said("images", "import", smallTree(), "--name", "small", "--format", "rootfs")
    expect(await said("run", "--image", "small", "--net", "none", "sh", "-c", "echo in small")).toBe("in small\n")
    const context = folder.at("context")
    mkdirSync(context)
    writeFileSync(`${context}/Recipe`, "FROM small\nARG WORD=none\nCOPY hello /opt/hello\nRUN echo $WORD > /opt/word\n")
    writeFileSync(`${context}/hello`, "hello\n")
    const build = ["images", "build", context, "--name", "mine:1", "--arg", "WORD=said", "--net", "none"]
    expect(await cli.run(build)).toMatchObject({ code: 0, stderr: expect.stringMatching(/COPY hello/) as string })
    await using _ = await session("maker", "--image", "mine:1", "--net", "none")
    expect(await said("exec", "maker", "cat", "/opt/hello", "/opt/word")).toBe("hello\nsaid\n")
    await said("exec", "--as", "root", "maker", "sh", "-c", "echo more > /opt/more")
    await said("stop", "maker")
    await said("images", "commit", "maker", "mine:2")
    expect(await said("run", "--image", "mine:2", "--net", "none", "cat", "/opt/more")).toBe("more\n")
    await said("images", "tag", "mine:2", "other")
    expect(JSON.parse(await said("images", "inspect", "other", "--json"))).toMatchObject({
      names: expect.arrayContaining(["docker.io/library/other:latest"]) as string[],
    })
    expect(await said("_complete", "--", "run", "--image", "sm")).toBe("small\n")
  })

  test("what cannot become an image is refused, and names can be taken away", async () => {
    expect((await cli.run(["images", "import", folder.at("none.tar")])).code).toBe(3)
    expect((await cli.run(["images", "import", "-", "--name", "x"], "no archive")).code).toBe(2)
    expect((await cli.run(["images", "build", folder.path, "--name", "x"])).code).toBe(3)
    await said("images", "rm", "mine:1", "mine:2", "other", "small")
    await said("images", "gc")
    expect((await cli.run(["images", "inspect", "small"])).code).toBe(3)
  })

  test("a workspace outlives its session", async () => {
    await said("workspaces", "create", "desk", "--limit", "50m")
    await said("run", "--workspace", "desk", "sh", "-c", "mkdir src; echo hi > src/a")
    expect(await said("run", "--workspace", "desk", "cat", "src/a")).toBe("hi\n")
    expect(await said("workspaces", "files", "desk", "src")).toMatch(/ a\n$/)
    await said("workspaces", "mkdir", "desk", "x/y")
    await said("workspaces", "mv", "desk", "src/a", "x/b")
    await said("workspaces", "remove", "desk", "src", "-r")
    await said("workspaces", "usage", "desk")
    await said("workspaces", "rm", "desk")
    expect((await cli.run(["workspaces", "files", "desk"])).code).toBe(3)
  })

  test("a secret comes from the input, reaches a program, and is nowhere to be read", async () => {
    expect(await cli.run(["secrets", "set", "TOKEN"], "hunter2\n")).toMatchObject({
      code: 0,
      stdout: "TOKEN is kept.\n",
    })
    expect(await said("secrets", "ls", "--json")).not.toContain("hunter2")
    expect(await said("run", "--secret", "TOKEN", "sh", "-c", "echo $TOKEN")).toBe("hunter2\n")
    await said("secrets", "rm", "TOKEN")
    expect((await cli.run(["secrets", "rm", "TOKEN"])).code).toBe(3)
    expect((await cli.run(["secrets", "set", "TOKEN"], "")).code).toBe(2)
  })

  test("a memory is kept, found and forgotten", async () => {
    const id = (await said("memory", "add", "the", "staging", "database", "--tag", "web")).trim()
    expect(await said("memory", "search", "staging")).toContain(id)
    expect(await said("memory", "get", id)).toBe("the staging database\n")
    expect(await said("memory", "ls", "--tag", "web")).toContain(id)
    await said("memory", "rm", id)
    expect((await cli.run(["memory", "get", id])).code).toBe(3)
  })
})

describe("--json", () => {
  /** Every verb with what it needs, in an order in which each finds what it asks for; `$x` is what a step before answered. */
  const steps: readonly (readonly [string, string, RegExp?])[] = [
    ["status", "status"],
    ["doctor", "doctor"],
    ["logs", "logs --tail 3"],
    ["create", "create --name j --workspace jw"],
    ["ls", "ls"],
    ["inspect", "inspect j"],
    ["update", "update j --ttl 1h"],
    ["run", "run -n --net none true"],
    ["exec", "exec -n j true"],
    ["shell", "shell -n j"],
    ["ps", "ps j"],
    ["kill", "kill j 99999", /not_found/],
    ["agent start", "agent start --session j -d hello"],
    ["agent prompt", "agent prompt -d j again"],
    ["agent status", "agent status j"],
    ["agent answer", "agent answer j yes", /not_found|conflict|invalid/],
    ["agent abort", "agent abort j"],
    ["agent stop", "agent stop j"],
    ["git state", "git state j"],
    ["git files", "git files j", /not_found|invalid|conflict/],
    ["git diff", "git diff j", /not_found|invalid|conflict/],
    ["git pr", "git pr j --title t", /not_found|invalid|conflict|forbidden/],
    ["pause", "pause j"],
    ["resume", "resume j"],
    ["hibernate", "hibernate j"],
    ["restore", "restore j"],
    ["snapshot", "snapshot j"],
    ["snapshots ls", "snapshots ls"],
    ["rollback", "rollback j $snapshot"],
    ["fork", "fork j --name k"],
    ["compare", "compare j k"],
    ["denials", "denials j"],
    ["stats", "stats --once"],
    ["cp", "cp package.json j:/tmp/x"],
    ["forward", "forward j 0", /invalid/],
    ["images ls", "images ls"],
    ["images inspect", "images inspect none", /not_found/],
    ["images pull", "images pull localhost:1/none:1", /unavailable|not_found|forbidden|timeout/],
    ["images import", "images import none.tar", /not_found/],
    ["images build", "images build . --name x", /not_found/],
    ["images tag", "images tag none x", /not_found/],
    ["images rm", "images rm none", /not_found/],
    ["images gc", "images gc"],
    ["images commit", "images commit j x", /conflict|unsupported|invalid/],
    ["workspaces ls", "workspaces ls"],
    ["workspaces create", "workspaces create jv"],
    ["workspaces usage", "workspaces usage jv"],
    ["workspaces mkdir", "workspaces mkdir jv a"],
    ["workspaces mv", "workspaces mv jv a b"],
    ["workspaces files", "workspaces files jv"],
    ["workspaces remove", "workspaces remove jv b -r"],
    ["workspaces rm", "workspaces rm jv"],
    ["secrets set", "secrets set S"],
    ["secrets ls", "secrets ls"],
    ["secrets rm", "secrets rm S"],
    ["login", "login"],
    ["token create", "token create --name t --scope exec"],
    ["token ls", "token ls"],
    ["token rm", "token rm $token-create"],
    ["memory add", "memory add text"],
    ["memory ls", "memory ls"],
    ["memory search", "memory search text"],
    ["memory get", "memory get $memory-add"],
    ["memory rm", "memory rm $memory-add"],
    ["snapshots rm", "snapshots rm $snapshot"],
    ["stop", "stop j"],
    ["rm", "rm j k"],
    ["completion", "completion bash"],
    ["_complete", "_complete -- ru"],
  ]

  test("every verb answers in JSON, and its faults are JSON", { timeout: 180_000 }, async () => {
    const ids = new Map<string, string>()
    for (const [name, line, refusal] of steps) {
      const words = line.replaceAll(/\$([\w-]+)/g, (_, key: string) => ids.get(key) ?? "").split(" ")
      const { stdout, stderr } = await cli.run(["--json", ...words], "input")
      if (!refusal) expect(stderr, line).toBe("")
      expect(refusal ? stderr : stdout, `${line}: ${stdout}${stderr}`).not.toBe("")
      const said = (refusal ? stderr : stdout).trim().split("\n")
      const [value] = said.map((each) => JSON.parse(each) as { id?: string; error?: { code: string } })
      if (refusal) expect(value?.error?.code, line).toMatch(refusal)
      ids.set(name.replace(" ", "-"), value?.id ?? "")
    }
    // Those that are missing here keep a terminal or start something; their JSON is tested with the rest of them.
    const others = [
      "start",
      "restart",
      "_serve",
      "attach",
      "mcp",
      ...verbs.map(({ name }) => name).filter((name) => /^(user|launcher)\b/.test(name)),
    ]
    expect(verbs.map(({ name }) => name).toSorted()).toEqual([...steps.map(([name]) => name), ...others].toSorted())
  })
})

function sha(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex")
}
