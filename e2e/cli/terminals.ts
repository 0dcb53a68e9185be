import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { expect, test } from "vitest"
import type { CliWorld } from "./world.ts"

/** Programs that have the terminal in front of us. */
export function terminals(world: CliWorld): void {
  const { session } = world

  test("a program has one, with our window and our keys", async () => {
    await using running = world.cli.startOnTerminal([
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
    await using running = world.cli.startOnTerminal(["run", "--", "sh", "-c", "echo ready; exec sleep 60"])
    await running.until("ready")
    running.child.stdin?.write("\u0003")
    expect((await running.ended).code).toBe(130)
  })

  test("it hears of a new window size", async () => {
    const fifo = world.folder.at("resize")
    execFileSync("mkfifo", [fifo])
    const resizing = `(read _ < ${fifo}; stty -F /dev/tty rows 41 cols 97) & `
    const program = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.1; done"
    await using running = world.cli.startOnTerminal(["run", "--", "bash", "-c", program], `${resizing} true`)
    await running.until("ready")
    writeFileSync(fifo, "now\n")
    await running.until("41 97")
    expect((await running.ended).code).toBe(0)
  })

  test("`shell` is a login shell", async () => {
    await using _ = await session("shelled")
    await using running = world.cli.startOnTerminal(["shell", "shelled"])
    running.child.stdin?.write("shopt -q login_shell && echo is-$((1+1))-login; exit 9\r")
    await running.until("is-2-login")
    expect((await running.ended).code).toBe(9)
  })
}
