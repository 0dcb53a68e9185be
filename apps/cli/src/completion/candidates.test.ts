import { execFileSync } from "node:child_process"
import { describe, expect, test } from "vitest"
import { verbs } from "../verbs.ts"
import { candidates, type Names } from "./candidates.ts"
import { completionScripts } from "./scripts.ts"

const names: Names = (kind) =>
  Promise.resolve(kind === "session" ? ["fix-login", "fix-logout", "other"] : [`a-${kind}`])
const complete = (...line: string[]) => candidates(verbs, line.slice(0, -1), line.at(-1) ?? "", names)

describe("completion", () => {
  test("of verbs, one word and two", async () => {
    expect((await complete("rest")).words).toEqual(["restart", "restore"])
    expect((await complete("images", "")).words).toContain("pull")
    expect((await complete("")).words).not.toContain("_complete")
    expect((await complete("images", "pull", "x", "")).words).toEqual([])
  })

  test("of names that are there, where a name belongs", async () => {
    expect((await complete("exec", "fix")).words).toEqual(["fix-login", "fix-logout"])
    expect((await complete("exec", "-w", "/tmp", "fix")).words).toEqual(["fix-login", "fix-logout"])
    expect((await complete("rm", "fix-login", "o")).words).toEqual(["other"])
    expect((await complete("run", "--image", "")).words).toEqual(["a-image"])
    expect((await complete("rollback", "x", "")).words).toEqual(["a-snapshot"])
  })

  test("of flags and their choices", async () => {
    expect((await complete("run", "--me")).words).toEqual(["--memory"])
    expect((await complete("run", "--net", "")).words).toEqual(["bridge", "host", "none", "proxy"])
    expect((await complete("run", "--name", "")).words).toEqual([])
  })

  test("of files, and of nothing in somebody else's command", async () => {
    expect((await complete("cp", "x")).areFiles).toBe(true)
    expect((await complete("start", "--config", "")).areFiles).toBe(true)
    expect((await complete("run", "--", "ls", "--")).areFiles).toBe(true)
  })

  test("the script for bash asks and offers", () => {
    // A stand-in for the program shows what the script asks it, in a real bash.
    const script = `
      warren() { [ "$1 $2" = "_complete --" ] && shift 2 && printf 'asked:%s\\n' "$#:$*" second; }
      ${completionScripts.bash}
      COMP_WORDS=(warren exec "fix") COMP_CWORD=2
      _warren
      printf '%s|' "\${COMPREPLY[@]}"`
    expect(execFileSync("bash", ["-c", script], { encoding: "utf8" })).toBe("asked:2:exec fix|asked:second|")
  })

  test("the script for bash leaves files to the shell and offers nothing when there is nothing", () => {
    const script = (answer: string) => `
      warren() { printf '%s' "${answer}"; }
      compopt() { echo "compopt $*"; }
      ${completionScripts.bash}
      COMP_WORDS=(warren cp x) COMP_CWORD=2
      _warren
      echo "\${#COMPREPLY[@]}"`
    expect(execFileSync("bash", ["-c", script(":files")], { encoding: "utf8" })).toBe("compopt -o default\n0\n")
    expect(execFileSync("bash", ["-c", script("")], { encoding: "utf8" })).toBe("0\n")
  })
})
