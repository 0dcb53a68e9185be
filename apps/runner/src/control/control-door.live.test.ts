import { execFile } from "node:child_process"
import { chmod, writeFile } from "node:fs/promises"
import { promisify } from "node:util"
import { systemClock } from "@warren/base/clock.ts"
import { silentLog } from "@warren/base/log.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"
import { describe, expect, test } from "vitest"
import { RpcDoor } from "../rpc-door.ts"
import { AccessLog } from "./access-log.ts"
import { openControlDoor } from "./control-door.ts"

const fail = (thrown: unknown): never => {
  throw thrown
}

const run = promisify(execFile)
const [nobody, controlGroup, otherGroup] = [65_534, 54_321, 54_322]
const plane = {} as UserPlane

/** Tries as another account: connects to both sockets, reads the log, writes to it. Says how each ended. */
const probe = `
const net = require("node:net"), fs = require("node:fs"), folder = process.argv[1]
const dial = (path) => new Promise((done) => {
  const socket = net.connect(path, () => { socket.destroy(); done("open") })
  socket.once("error", (failure) => done(failure.code))
})
const attempt = (work) => { try { work(); return "open" } catch (failure) { return failure.code } }
;(async () => console.log(JSON.stringify({
  control: await dial(folder + "/control.sock"),
  rpc: await dial(folder + "/rpc.sock"),
  read: attempt(() => fs.readFileSync(folder + "/access.log")),
  write: attempt(() => fs.appendFileSync(folder + "/access.log", "x")),
})))()`

describe.skipIf(process.getuid?.() !== 0)("other accounts on the machine (needs root)", () => {
  test("the control plane's group reaches its own door and nothing else; others reach nothing", async () => {
    await using folder = await TempFolder.make()
    await chmod(folder.path, 0o755)
    await writeFile(folder.at("statement.pub"), "")
    const access = new AccessLog(folder.at("access.log"), systemClock, fail)
    access.add({ user: "alice", call: "x.y", result: "ok" })
    const answered = { contract: userPlane, handlers: plane, log: silentLog, build: "x" }
    await using _ = await RpcDoor.open({ ...answered, path: folder.at("rpc.sock"), caller: { name: "alice" } })
    await using __ = await openControlDoor({
      ...{ path: folder.at("control.sock"), group: controlGroup, keyFile: folder.at("statement.pub"), user: "alice" },
      ...{ plane, access, clock: systemClock, log: silentLog, build: "x" },
    })
    const as = async (gid: number): Promise<unknown> => {
      const { stdout } = await run(process.execPath, ["-e", probe, folder.path], { uid: nobody, gid, cwd: "/" })
      return JSON.parse(stdout)
    }
    const nothing = { rpc: "EACCES", read: "EACCES", write: "EACCES" }
    expect(await as(controlGroup)).toEqual({ control: "open", ...nothing })
    expect(await as(otherGroup)).toEqual({ control: "EACCES", ...nothing })
  })
})
