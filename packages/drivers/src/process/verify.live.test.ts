import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, writeFileSync } from "node:fs"
import { silentLog } from "@warren/base/log.ts"
import { connectUnix } from "@warren/base/unix-socket.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect, it } from "vitest"
import type { Sandbox } from "../driver.ts"
import { defaultLimits } from "../sandbox-spec.ts"
import { specOf } from "../spec-of.ts"
import { machineImage, openProcessDriver } from "./driver.ts"
import { processSubject, programs } from "./testing/subject.ts"
import { leaks } from "./verify.ts"

const never = new AbortController().signal
const subject = processSubject()
/** Says what warren-confine would say and confines nothing. */
const pretender = `#!/bin/sh
while [ $# -gt 0 ]; do case $1 in --init) init=$2;; --socket) socket=$2;; esac; shift 2; done
"$init" --listen "$socket" --profile strict --user $(id -u):$(id -g) --subreaper </dev/null >/dev/null 2>&1 &
until grep -q "00010000 .*$socket" /proc/net/unix; do sleep 0.01; done
echo listening
echo started $!
trap 'kill -9 $!; exit' TERM
wait
`

it("finds an open file where Landlock is not, by trying", async () => {
  await using folder = await TempFolder.make()
  const canary = folder.at("canary")
  writeFileSync(canary, "x")
  chmodSync(canary, 0o666)
  chmodSync(folder.path, 0o711)
  const ids = process.getuid?.() === 0 ? "64321:64321" : `${process.getuid?.()}:${process.getgid?.()}`
  const init = spawn(programs.init, ["--listen", folder.at("s"), "--profile", "strict", "--user", ids, "--subreaper"])
  try {
    // The name is there a moment before anybody listens.
    await expect.poll(() => connectUnix(folder.at("s")).then((socket) => void socket.destroy())).toBeUndefined()
    const unconfined = { connect: (signal) => connectUnix(folder.at("s"), signal) } as Pick<Sandbox, "connect">
    expect(await leaks(unconfined as Sandbox, canary)).toEqual(
      expect.arrayContaining(["a file beside its folders can be read", "a file beside its folders can be written"]),
    )
  } finally {
    init.kill("SIGKILL")
    await once(init, "exit")
  }
})

it("refuses to hand out a sandbox that is not confined", async () => {
  await using folder = await TempFolder.make()
  const confine = folder.at("pretender")
  writeFileSync(confine, pretender)
  chmodSync(confine, 0o755)
  await using driver = await openProcessDriver({
    root: subject.root,
    programs: { ...programs, confine },
    isUnlimitedAllowed: true,
    log: silentLog,
  })
  const spec = specOf(machineImage, { limits: { ...defaultLimits, diskBytes: 0 } })
  await driver.create(spec, never)
  const refusal = await driver.start(spec.id, never).catch((thrown: unknown) => thrown)
  expect(refusal).toMatchObject({ code: "unavailable" })
  expect(String(refusal)).toMatch(/no system call filter/)
  await driver.destroy(spec.id)
})
