import { spawnSync } from "node:child_process"
import type { Terminal } from "../terminal/terminal.ts"

interface Window {
  readonly cols: number
  readonly rows: number
}

/** Gives the keyboard to a program: every key goes to it, and it hears of the window's size. */
export function rawMode(terminal: Terminal, resize: (window: Window) => void): Disposable {
  const onResize = (): void => resize(terminal.window)
  terminal.stdout.on("resize", onResize)
  if (terminal.stdin.isTTY) {
    terminal.stdin.setRawMode(true)
    // Node's raw mode still turns each line feed into two characters. What comes from inside has been through a terminal
    // there and must not be touched again. Leaving raw mode takes this back, too.
    spawnSync("stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] })
  }
  return {
    [Symbol.dispose]() {
      terminal.stdout.off("resize", onResize)
      if (terminal.stdin.isTTY) terminal.stdin.setRawMode(false)
    },
  }
}
