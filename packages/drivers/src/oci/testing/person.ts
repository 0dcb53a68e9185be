import { execFile, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { chownSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { checkout, withCheckout } from "../../testing/elsewhere.ts"

const run = promisify(execFile)

/** An ordinary user of this machine, made for a test. */
export interface Person extends AsyncDisposable {
  readonly name: string
  readonly uid: number
  readonly home: string
}

/** With this many subordinate ids; gone afterwards, with all they own. */
export async function makePerson(ids: number): Promise<Person> {
  const name = `wr${randomBytes(4).toString("hex")}`
  const counts = ["SUB_UID_COUNT", "SUB_GID_COUNT"].flatMap((key) => ["-K", `${key}=${ids}`])
  await run("useradd", ["--create-home", ...counts, name])
  const uid = Number((await run("id", ["-u", name])).stdout)
  return {
    name,
    uid,
    home: `/home/${name}`,
    [Symbol.asyncDispose]: async () => void (await run("userdel", ["--remove", name])),
  }
}

/** Groups of version 1 that belong to a person: what an administrator, or systemd, would delegate. */
export function delegateGroups(person: Person): Disposable & { readonly parent: string } {
  const parent = `/${person.name}`
  const folders = ["cpu", "cpuacct", "memory", "pids", "freezer"].map((name) => `/sys/fs/cgroup/${name}${parent}`)
  for (const folder of folders) {
    mkdirSync(folder)
    chownSync(folder, person.uid, person.uid)
  }
  return { parent, [Symbol.dispose]: () => folders.forEach((folder) => rmdirSync(folder)) }
}

export interface Report {
  readonly passed: number
  readonly failures: readonly string[]
  /** What this machine lacks, in the words of the tests that were left out. */
  readonly skipped: readonly string[]
}

/** Runs test files of this folder as that person; `only`: of their tests, those with such a name. */
export async function testAs(
  person: Person,
  files: readonly string[],
  env: NodeJS.ProcessEnv = {},
  only?: RegExp,
): Promise<Report> {
  const output = join(person.home, "report.json")
  const vitest = [join(checkout, "node_modules/vitest/vitest.mjs"), "run", "--configLoader", "runner"]
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${output}`]
  const named = only ? ["--testNamePattern", only.source] : []
  const paths = files.map((name) => join("packages/drivers/src/oci", name))
  // The bounding set stays: without it newuidmap has no right to write a map.
  const drop = ["--reuid", person.name, "--regid", person.name, "--init-groups", "--inh-caps=-all"]
  const child = spawn(
    ...withCheckout(["setpriv", ...drop, process.execPath, ...vitest, ...reporters, ...named, ...paths]),
    {
      env: { PATH: process.env["PATH"], HOME: person.home, NO_COLOR: "1", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    },
  )
  let said = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (said += chunk.toString()))
  const [code] = (await once(child, "close")) as [number | null]
  const report = readReport(output)
  // A file that does not even load, or a hook that fails, has no test to tell it.
  return code === 0 || report.failures.length > 0 ? report : { ...report, failures: [said] }
}

interface VitestReport {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly status: string
      readonly fullName: string
      readonly failureMessages: readonly string[] | null
    }[]
  }[]
}

function readReport(path: string): Report {
  const { testResults } = JSON.parse(readFileSync(path, "utf8")) as VitestReport
  const all = testResults.flatMap(({ assertionResults }) => assertionResults)
  const failed = all.filter(({ status }) => status === "failed")
  return {
    passed: all.filter(({ status }) => status === "passed").length,
    failures: failed.map(({ fullName, failureMessages }) => `${fullName}: ${failureMessages?.join("; ")}`),
    skipped: all.filter(({ status }) => !["passed", "failed"].includes(status)).map(({ fullName }) => fullName),
  }
}

/** Living processes that belong to a person or to one of the ids they may give away. */
export function processesOf(uids: readonly { readonly first: number; readonly count: number }[]): string[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  return pids.filter((pid) => {
    const status = read(`/proc/${pid}/status`)
    const uid = Number(/^Uid:\t(\d+)/m.exec(status)?.[1] ?? -1)
    return !/^State:\t[ZX]/m.test(status) && uids.some(({ first, count }) => uid >= first && uid < first + count)
  })
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}
