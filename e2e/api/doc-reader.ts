import { execFile } from "node:child_process"
import { chmodSync, mkdirSync, realpathSync, writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { promisify } from "node:util"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { dist, Home } from "../runner/home.ts"
import { freePort } from "@warren/base/testing/free-port.ts"

const run = promisify(execFile)
const programs = process.env["WARREN_TEST_PROGRAMS"] ? resolve(process.env["WARREN_TEST_PROGRAMS"]) : dist
const claude = resolve(import.meta.dirname, "../node_modules/@anthropic-ai/claude-code-linux-x64/claude")

/** What has a terminal, or somebody who ends it, has neither here: it is told to end as soon as it has said something. */
const untilTold = `#!/bin/bash
set -m
said=$(mktemp)
"$@" > "$said" 2>&1 &
until [ -s "$said" ] || ! kill -0 $! 2> /dev/null; do sleep 0.02; done
kill -INT $!
wait $!
code=$?
cat "$said"
test -s "$said" || exit 1
rm "$said"
[ $code = 0 ] || [ $code = 130 ] || exit $code
`

/** Somebody who reads the docs and does what they say: a home, a Warren and the files of their own, and nothing else. */
export class DocReader implements AsyncDisposable {
  readonly #folder: TempFolder
  readonly #env: Readonly<Record<string, string | undefined>>
  #turn = 0

  private constructor(folder: TempFolder, env: Readonly<Record<string, string | undefined>>) {
    this.#folder = folder
    this.#env = env
  }

  /** With the programs of another place, and what has to be set for them. */
  static async make(cli = `${programs}/cli.js`, env: Readonly<Record<string, string>> = {}): Promise<DocReader> {
    const folder = await TempFolder.make()
    const command = (name: string, text: string): void => {
      writeFileSync(folder.at("bin", name), text.startsWith("#!") ? text : `#!/bin/sh\n${text}\n`)
      chmodSync(folder.at("bin", name), 0o755)
    }
    mkdirSync(folder.at("bin"))
    command("warren", `exec '${process.execPath}' '${cli}' "$@"`)
    command("npx", `test "$1" = warren && exec "$@"; echo "npx $1: not here" >&2; exit 1`)
    command("claude", `exec '${claude}' "$@"`)
    command("sudo", `exec "$@"`)
    command("until-told", untilTold)
    const noPool = { WARREN_POOL_LEAST: "0", WARREN_POOL_MB: "0" }
    const own = { HOME: realpathSync(folder.path), PATH: `${folder.at("bin")}:${process.env["PATH"]}` }
    // Nothing that whoever runs the tests has set for a Warren of their own.
    const ours = Object.entries(process.env).filter(([name]) => !/^(WARREN|CLAUDE|ANTHROPIC|OPENAI|E2B)_/.test(name))
    const port = String(await freePort())
    return new DocReader(folder, { ...Object.fromEntries(ours), ...noPool, WARREN_PORT: port, ...env, ...own })
  }

  /** Runs it, in a folder of its own unless one is named; throws what a command said that did not end well. */
  async run(code: string, folder = `turn-${++this.#turn}`): Promise<string> {
    const cwd = this.#folder.at(folder)
    mkdirSync(cwd, { recursive: true })
    const running = run("bash", ["-euxo", "pipefail", "-c", code], { cwd, env: this.#env })
    running.child.stdin?.end()
    return (await running).stdout
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.run("warren ls -q | xargs -r warren rm; warren stop").catch(() => undefined)
    const home = this.#folder.at(".local", "share", "warren")
    mkdirSync(home, { recursive: true })
    await new Home(home)[Symbol.asyncDispose]()
    await this.#folder[Symbol.asyncDispose]()
  }
}
