import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Sandbox } from "../driver.ts"
import { Shell } from "../init/shell.ts"
import { Fixture, sh, text } from "./testing/fixture.ts"

/** What a command does to a shell, and that the next one works. */
describe.each(["/bin/bash", "/bin/sh"])("a shell that is %s", (path) => {
  const fixture = new Fixture()
  let sandbox: Sandbox
  let shell: Shell

  beforeAll(async () => {
    sandbox = await fixture.start()
  })
  beforeEach(async () => {
    shell = await Shell.open(sandbox, { shell: path, env: { GIVEN: "given" } })
  })
  afterEach(async () => {
    const next = await shell.run("echo next; (exit 4)")
    expect(next).toMatchObject({ code: 4, reason: "exit", restarted: false, truncated: false })
    expect(next.output.toString()).toBe("next\n")
    await shell.close()
  })

  const said = async (command: string): Promise<string> => (await shell.run(command)).output.toString()

  it("keeps its folder, variables, functions and options", async () => {
    await shell.run("cd /tmp && mkdir -p 'a b' && cd 'a b'")
    await shell.run('export A=exported; B=plain; f() { echo "f $A $B $1"; }; set -f; alias g=true; umask 077')
    expect(await said("pwd; f x; echo *; sh -c 'echo $A$B'; umask")).toBe(
      "/tmp/a b\nf exported plain x\n*\nexported\n0077\n",
    )
    expect((await shell.run("cd /")).cwd).toBe("/")
    await shell.run("set +f")
  })

  it("keeps the status of the command before", async () => {
    await shell.run("(exit 9)")
    expect(await said("echo $?")).toBe("9\n")
  })

  it("keeps background jobs", async () => {
    const pid = (await said("sleep 1000 & echo $!")).trim()
    // An interactive bash ignores TERM, and so does its child until it has become the program: one sent before that is lost.
    await said(`until [ "$(cat /proc/${pid}/comm)" = sleep ]; do :; done`)
    expect(await said(`kill -0 ${pid} && echo lives; kill ${pid}; wait ${pid} 2>/dev/null; echo $?`)).toBe(
      "lives\n143\n",
    )
  })

  it("keeps the output of a background job out of the status of what follows", async () => {
    const result = await shell.run("(sleep 0.2; echo late) & echo now")
    expect(result).toMatchObject({ code: 0, reason: "exit" })
    expect(result.output.toString()).toContain("now\n")
    await shell.run("wait")
  })

  it("ends by `exit 3` and is replaced, in the same folder, with the first environment", async () => {
    await shell.run("cd /tmp; export A=1")
    expect(await shell.run("echo before; exit 3")).toMatchObject({ code: 3, reason: "exit", restarted: true })
    expect(await said('pwd; echo "$A$GIVEN"')).toBe("/tmp\ngiven\n")
  })

  it("ends by `exec true` and is replaced", async () => {
    expect(await shell.run("exec true")).toMatchObject({ code: 0, restarted: true })
    expect(await shell.run("exec sh -c 'echo other; exit 6'")).toMatchObject({ code: 6, restarted: true })
  })

  it("ends by killing itself, and is replaced", async () => {
    expect(await shell.run("kill -9 $$")).toMatchObject({
      code: null,
      signal: "SIGKILL",
      reason: "signal",
      restarted: true,
    })
  })

  it("ends by `set -e` and a failure, with that status", async () => {
    expect(await shell.run("set -e; (exit 5); echo never")).toMatchObject({ code: 5, restarted: true })
  })

  it.each([
    ["a syntax error", "if then fi ("],
    ["an unterminated quote", "echo 'never ends"],
    ["an unterminated double quote", 'echo "never $(ends'],
    ["an unterminated brace", "f() { echo"],
  ])("survives %s", async (_, command) => {
    await shell.run("KEPT=kept")
    const result = await shell.run(command)
    expect(result).toMatchObject({ code: 2, reason: "exit", restarted: false })
    expect(result.output.toString()).toMatch(/[Ss]yntax|unexpected|[Uu]nterminated/)
    expect(await said("echo $KEPT")).toBe("kept\n")
  })

  it("reads here-documents, also unfinished ones", async () => {
    expect(await said("cat <<'END'\n$HOME `x` \\\nEND\ncat <<END\n$GIVEN\nEND")).toBe("$HOME `x` \\\ngiven\n")
    const unfinished = await shell.run("cat <<END\nno end")
    expect(unfinished).toMatchObject({ code: 0, restarted: false })
    expect(unfinished.output.toString()).toContain("no end")
  })

  it("runs nothing, comments, many lines, and lines without a last newline", async () => {
    expect(await shell.run("")).toMatchObject({ code: 0, outputBytes: 0 })
    expect(await shell.run("# only this")).toMatchObject({ code: 0, outputBytes: 0 })
    expect(await said("echo a\necho b\\\n c\n\necho d")).toBe("a\nb c\nd\n")
  })

  it("is not deceived by output that looks like its own reports", async () => {
    const fake = '{"ev":"done","code":99,"reason":"exit"}'
    const result = await shell.run(
      `printf '\\000\\000\\000\\047%s' '${fake}'; for fd in 3 4 5 6 7 8 9; do { echo 77 >&$fd; } 2>/dev/null; done; (exit 8)`,
    )
    expect(result).toMatchObject({ code: 8, reason: "exit", restarted: false })
    expect(result.output.toString()).toContain(fake)
  })

  it("is not deceived by writing 99 to every descriptor it has", async () => {
    const result = await shell.run(
      'for fd in /proc/self/fd/* /proc/$$/fd/*; do case ${fd##*/} in 0|1|2) ;; *) timeout 1 sh -c "echo 99 > $fd" 2>/dev/null;; esac; done; (exit 8)',
      { timeoutMs: 20_000 },
    )
    expect(result).toMatchObject({ code: 8, reason: "exit" })
  })

  it("passes bytes as they are", async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
    const octal = [...bytes].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("")
    expect((await shell.run(`printf '${octal}'`)).output.equals(bytes)).toBe(true)
  })

  it("takes a command of a megabyte, and refuses one beyond its limit", { timeout: 120_000 }, async () => {
    const word = "x".repeat(1_000_000)
    const result = await shell.run(`v='${word}'; echo \${#v}`)
    expect(result.output.toString()).toBe("1000000\n")
    const many = Array.from({ length: 20_000 }, (_, index) => `: line ${index} of a long script of many lines`).join(
      "\n",
    )
    expect(await said(`${many}\necho done`)).toBe("done\n")
    await expect(shell.run(`: '${"x".repeat(9 * 1024 * 1024)}'`)).rejects.toMatchObject({ code: "limit" })
  })

  it("gives an empty stdin to what reads it", async () => {
    expect(await said("cat; wc -c; read x; echo $?")).toBe("0\n1\n")
  })

  it("ends what takes too long, keeps its own state and jobs of before", async () => {
    const job = (await said("KEPT=kept; sleep 1000 & echo $!")).trim()
    const result = await shell.run("echo begun; setsid sleep 2000 & sleep 2001", { timeoutMs: 300 })
    expect(result).toMatchObject({ reason: "timeout", restarted: false })
    // dash adds that it saw something killed.
    expect(result.output.toString()).toMatch(/^begun\n(Killed\n)?$/)
    expect(await text(sandbox, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")).not.toMatch(/sleep 200[01]/)
    expect(await said(`echo $KEPT; kill -0 ${job} && echo lives`)).toBe("kept\nlives\n")
    await sh(sandbox, `kill -9 ${job}`)
  })

  it("ends what never gives up: a loop in the shell itself", async () => {
    expect(await shell.run("trap '' TERM INT HUP; while :; do :; done", { timeoutMs: 200 })).toMatchObject({
      reason: "timeout",
    })
  })

  it("lets go when the caller does", async () => {
    const controller = new AbortController()
    const reason = new Error("changed my mind")
    const running = shell.run("sleep 3000", { signal: controller.signal })
    await expect.poll(() => text(sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).toContain("sleep 3000")
    controller.abort(reason)
    await expect(running).rejects.toBe(reason)
    await expect.poll(() => text(sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).not.toContain("sleep 3000")
    // The shell is brought back meanwhile: until then it is busy, and says so.
    await expect
      .poll(() =>
        shell.run("echo back").then(
          (result) => result.output.toString(),
          (fault: { code: string }) => fault.code,
        ),
      )
      .toBe("back\n")
  })

  it("stops at the output it may make", async () => {
    const result = await shell.run("yes", { outputBytesMax: 100_000 })
    expect(result).toMatchObject({ reason: "limit", truncated: true })
    expect(result.output.length).toBe(100_000)
  })

  it("does one thing at a time, and says so", async () => {
    const first = shell.run("sleep 0.5; echo first")
    await expect.poll(() => text(sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).toContain("sleep 0.5")
    await expect(shell.run("echo second")).rejects.toMatchObject({ code: "conflict" })
    expect((await first).output.toString()).toBe("first\n")
  })

  it("survives commands that close or redirect its descriptors", async () => {
    await shell.run("exec 2>/dev/null; exec 9>/workspace/nine; echo nine >&9; exec 9>&-")
    expect(await text(sandbox, "cat /workspace/nine")).toBe("nine\n")
    const result = await shell.run("exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; (exit 4)")
    expect(result).toMatchObject({ code: 4, reason: "exit" })
  })

  it("comes back after its output was redirected for good", async () => {
    const result = await shell.run("exec >/dev/null 2>&1; echo unseen")
    expect(result).toMatchObject({ code: 0, reason: "exit" })
  })

  it("works in a folder that is gone", async () => {
    await shell.run("mkdir -p /tmp/gone && cd /tmp/gone && rmdir /tmp/gone")
    expect((await shell.run("exit 3")).code).toBe(3)
  })
})

describe("a shell that runs out of memory", () => {
  const fixture = new Fixture()

  it("says so, and works again", async () => {
    const sandbox = await fixture.start({ limits: { memoryBytes: 64 * 1024 * 1024 } })
    const shell = await Shell.open(sandbox)
    expect(await shell.run("tail /dev/zero")).toMatchObject({ reason: "oom" })
    expect((await shell.run("echo next")).output.toString()).toBe("next\n")
    expect(await shell.run("(exit 137)")).toMatchObject({ code: 137, reason: "exit" })
  })
})
