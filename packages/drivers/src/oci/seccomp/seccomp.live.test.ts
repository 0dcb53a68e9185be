import { spawnSync } from "node:child_process"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { errnos } from "./bpf.ts"
import { compileSeccomp } from "./compile.ts"
import { absent, seccompPolicy } from "./policy.ts"
import { archOf, archs } from "./syscalls.ts"
import { argumentCases } from "./testing/argument-cases.ts"
import { Guard, type Attempt } from "./testing/guard.ts"

const arch = archOf(process.arch)
const reason = arch === undefined ? "no table for this machine" : !has("cc") ? "no C compiler" : undefined
const facts = archs[arch ?? "x86_64"]
const policy = seccompPolicy("strict")
const eperm = String(errnos.EPERM)
const enosys = String(errnos.ENOSYS)

const nodeScript = `
const { execFileSync } = require("child_process"), fs = require("fs"), net = require("net"), { Worker } = require("worker_threads")
fs.watch(".").close(); execFileSync("true"); require("os").networkInterfaces()
new Worker("1", { eval: true }).on("exit", () => {
  const server = net.createServer((s) => s.end("node\\n")).listen(0, "127.0.0.1", () =>
    net.connect(server.address().port, "127.0.0.1").on("end", () => server.close()).pipe(process.stdout))
})`

const pythonScript = `
import subprocess, multiprocessing, threading, tempfile, socket, ssl, asyncio, mmap, os, select, shutil
subprocess.run(["true"], check=True)
with multiprocessing.get_context("fork").Pool(2) as pool: assert pool.map(abs, [-1, -2]) == [1, 2]
t = threading.Thread(target=lambda: None); t.start(); t.join()
async def main(): return (await (await asyncio.create_subprocess_exec("echo", "python", stdout=-1)).communicate())[0].decode()
mmap.mmap(-1, 4096).close(); os.memfd_create("x")
print(asyncio.run(main()), end="")`

const commit = "git -c user.name=n -c user.email=e@x commit -qm m"

/** In this order, in one folder. */
const programs: readonly { needs: readonly string[]; run: readonly string[]; says?: string }[] = [
  {
    needs: ["bash"],
    run: ["bash", "-c", "seq 9 | sort -r | head -1 && (sleep 0.01 & wait) && cat <(echo in)"],
    says: "9\nin\n",
  },
  {
    needs: ["git"],
    run: [
      "sh",
      "-c",
      `git init -q repo 2>&1 && cd repo && echo a > a && git add a && ${commit} && git gc -q && git log --format=%s`,
    ],
  },
  { needs: ["node"], run: ["node", "-e", nodeScript], says: "node\n" },
  { needs: ["python3"], run: ["python3", "-c", pythonScript], says: "python\n" },
  {
    needs: ["sqlite3"],
    run: ["sqlite3", "db", "pragma journal_mode=wal; create table t(x); select 7"],
    says: "wal\n7\n",
  },
  {
    needs: ["tar"],
    run: ["sh", "-c", "mkfifo fifo && (echo through > fifo & cat fifo) && tar cf - fifo | tar tf -"],
    says: "through\nfifo\n",
  },
  {
    needs: ["cc"],
    run: ["sh", "-c", "echo 'int main(void){return 0;}' > c.c && cc -g -o c c.c && ./c && echo ok"],
    says: "ok\n",
  },
  {
    needs: ["cc", "gdb"],
    run: ["sh", "-c", "gdb -q -batch -ex 'break main' -ex run -ex kill ./c 2>&1 | grep -c 'Breakpoint 1, '"],
    says: "1\n",
  },
  {
    needs: ["cc", "strace"],
    run: ["sh", "-c", "strace -f -o log cat c.c > /dev/null && grep -c 'openat(.*\"c.c\"' log"],
    says: "1\n",
  },
  { needs: ["dpkg"], run: ["dpkg", "--print-architecture"] },
  { needs: ["java"], run: ["java", "-version"] },
]

/** Would end, stop or double the child that makes the attempt, or (msgget) leave something behind on this machine. */
const untried = new Set(["exit", "exit_group", "rt_sigreturn", "pause", "fork", "vfork", "restart_syscall", "msgget"])

describe.skipIf(reason !== undefined)(`the filter in this kernel${reason === undefined ? "" : ` (${reason})`}`, () => {
  let guard: Guard
  beforeAll(async () => void (guard = await Guard.build(compileSeccomp("strict", arch ?? "x86_64"))))
  afterAll(async () => await guard[Symbol.asyncDispose]())

  const named = (names: readonly string[], args: readonly number[] = []): readonly Attempt[] =>
    names.flatMap((name) => {
      const number = facts.numbers.get(name)
      return number === undefined ? [] : [{ label: name, number, args }]
    })
  const results = async (attempts: readonly Attempt[], under: "filter" | "nothing" = "filter") => {
    const errors = await guard.try(attempts, under)
    return Object.fromEntries(attempts.map(({ label }, index) => [label, errors[index]]))
  }
  const all = (attempts: readonly Attempt[], errno: string) =>
    Object.fromEntries(attempts.map(({ label }) => [label, errno]))

  it("refuses with EPERM, every call of that list", async () => {
    const attempts = named(policy.refused)
    expect(await results(attempts)).toEqual(all(attempts, eperm))
  })

  it("does not know what is absent", async () => {
    // uretprobe: newer kernels ask no filter about it and end whoever calls it without a probe.
    const attempts = named(absent.filter((name) => name !== "uretprobe"))
    expect(await results(attempts)).toEqual(all(attempts, enosys))
  })

  it("changes no answer of what is allowed", async () => {
    const attempts = named(
      policy.allowed.filter((name) => !untried.has(name)),
      [-1, -1, -1, -1, -1, -1],
    )
    expect(await results(attempts)).toEqual(await results(attempts, "nothing"))
  })

  it.runIf(arch === "x86_64")("has nothing behind int 0x80 and x32", async () => {
    const entries: readonly Attempt[] = [
      { label: "i386 getpid", entry: 32, number: 20 },
      { label: "i386 socketcall", entry: 32, number: 102, args: [1] },
      { label: "i386 unshare", entry: 32, number: 310, args: [0x1000_0000] },
      { label: "i386 mount", entry: 32, number: 21 },
      { label: "x32 getpid", number: 0x4000_0027 },
      { label: "x32 unshare", number: 0x4000_0110, args: [0x1000_0000] },
      { label: "x32 ptrace", number: 0x4000_0209 },
      { label: "x32 number without its bit", number: 0x209 },
    ]
    expect(await results(entries)).toEqual(all(entries, enosys))
  })

  it.each(argumentCases)("%s: %s", async (label, name, args, errno) => {
    expect(await results(named([name], args).map((attempt) => ({ ...attempt, label })))).toEqual({
      [label]: String(errno),
    })
  })

  describe("ordinary programs", () => {
    for (const { needs, run, says } of programs) {
      const lacking = needs.filter((program) => !has(program))
      it.skipIf(lacking.length > 0)(
        `${run.join(" ").split("\n")[0]}${lacking.map((program) => ` (no ${program})`).join("")}`,
        async () => {
          const { code, output } = await guard.run(...run)
          expect({ code, output }).toEqual({ code: 0, output: says ?? output })
        },
      )
    }
  })
})

function has(program: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${program}`]).status === 0
}
