import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import { createServer, connect } from "node:net"
import { join } from "node:path"
import { text as readAll } from "node:stream/consumers"
import { createLog } from "@warren/base/log.ts"
import type { Sandbox } from "../../../driver.ts"
import { exec } from "../../../init/exec.ts"
import { defaultLimits, type SandboxSpec } from "../../../sandbox-spec.ts"
import { specOf } from "../../../spec-of.ts"
import { openOciDriver, type OciDriver, type OciOptions } from "../../driver.ts"
import { hostImage } from "../../host-image.ts"
import { initPid } from "../../testing/invariants.ts"
import { connectionsMax } from "../rules.ts"
import { deviceOf, ping, quiet, six, versionSix } from "./forbidden.ts"
import { ip, machine } from "./machine.ts"

/**
 * Sandboxes with addresses on a machine whose network is this test's own: `bridge-life ROOT PROGRAMS`, in a new network
 * namespace. Says what was seen, as JSON. "Outside" is one more namespace: a private network 10.9.9.0/24, beyond it the public
 * 203.0.113.10 and a metadata service. "Elsewhere" is another network of the host, 10.8.8.0/24.
 */
const [root = "", programs = "{}"] = process.argv.slice(2)
const never = new AbortController().signal
const open = (): Promise<OciDriver> =>
  openOciDriver({
    root,
    programs: JSON.parse(programs) as OciOptions["programs"],
    log: createLog((line) => process.stderr.write(line)),
  })

ip("link", "set", "lo", "up")
// The kernel says no to one address only so often in a second; here it is asked often.
writeFileSync("/proc/sys/net/ipv4/icmp_ratelimit", "0")
/** One of every range that nobody may go to, as far as another machine can have it. */
const notPublic = ["0.0.0.9", "100.64.0.9", "172.16.0.9", "192.0.0.9", "192.168.0.9", "198.18.0.9", "240.0.0.9"]
const outside = await machine("up0", "10.9.9.1", [
  ...["10.9.9.2/24", "203.0.113.10/32", "169.254.169.254/32"],
  ...notPublic.map((address) => `${address}/32`),
])
const elsewhere = await machine("up1", "10.8.8.1", ["10.8.8.2/24"])
ip("route", "add", "default", "via", "10.9.9.2")
const onHost = createServer((socket) => socket.end("the host\n")).listen(9090)
await once(onHost, "listening")

let driver = await open()
const image = await hostImage(join(root, "host-image"))
const limits = { ...defaultLimits, ...(driver.abilities.diskLimit ? {} : { diskBytes: 0 }) }

async function start(changes: Partial<SandboxSpec> = {}): Promise<Sandbox> {
  const spec = specOf(image, { limits, network: { mode: "bridge" }, ...changes })
  await driver.create(spec, never)
  return driver.start(spec.id, never)
}
async function sh(sandbox: Sandbox, command: string): Promise<string> {
  const { stdout } = await exec(sandbox, { argv: ["bash", "-c", command], timeoutMs: 5_000 })
  return stdout.toString().trim()
}
/** What a server says, or "refused" when there is a quick no. */
const ask = (sandbox: Sandbox, host: string, port: number): Promise<string> =>
  sh(
    sandbox,
    `exec 2>/dev/null; timeout 2 cat </dev/tcp/${host}/${port}; s=$?; [ $s = 124 ] && echo silence; [ $s = 1 ] && echo refused`,
  )
const send = (host: string, port: number, words: string, from = "0.0.0.0"): string => `perl -e '
  use Socket; socket(my $s, AF_INET, SOCK_DGRAM, 0); alarm 2; bind($s, sockaddr_in(0, inet_aton("${from}"))) or die;
  send($s, "${words}", 0, sockaddr_in(${port}, inet_aton("${host}"))) or print "not sent";
  if (${port} == 53) { recv($s, my $answer, 100, 0); print $answer }'`
const addressOf = (sandbox: Sandbox): Promise<string> =>
  sh(
    sandbox,
    "perl -MSocket -e 'socket(S,AF_INET,SOCK_DGRAM,0);connect(S,sockaddr_in(9,inet_aton(\"203.0.113.10\")));print inet_ntoa((sockaddr_in(getsockname(S)))[1])'",
  )
const fromOutside = async (host: string, port: number): Promise<string> => {
  const socket = connect(8083, "10.9.9.2")
  socket.write(`${host} ${port}`)
  return (await readAll(socket)).trim()
}
const crowd = (host: string, count: number): string => `perl -e '
  use Socket; for my $n (1..${count}) { socket(my $s, AF_INET, SOCK_DGRAM, 0); bind($s, sockaddr_in(10000 + $n, INADDR_ANY));
  send($s, "x", 0, sockaddr_in(8084, inet_aton("${host}"))) }'`
const devices = (): string[] => readFileSync("/proc/net/dev", "utf8").match(/wrn\w+/g) ?? []
const tables = (): string => execFileSync("nft", ["list", "tables"]).toString().trim()
const forwarding = (): string => readFileSync("/proc/sys/net/ipv4/conf/up0/forwarding", "utf8").trim()
const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

const seen: Record<string, unknown> = {}
try {
  seen["before"] = [devices(), tables(), forwarding()]
  const one = await start({ dns: ["10.9.9.2"] })
  const two = await start()
  const address = await addressOf(two)
  const gateway = address.replace(/\d+$/, (last) => String(Number(last) - 1))
  // Somebody listens in both, so that what does not answer is kept from answering.
  for (const sandbox of [one, two]) {
    const listen = `perl -MIO::Socket::INET -e '$l=IO::Socket::INET->new(Listen=>9,LocalPort=>7070,ReuseAddr=>1); while($c=$l->accept){print $c "in\\n";close $c}' >/dev/null 2>&1 &`
    await sh(sandbox, listen)
    while ((await ask(sandbox, "127.0.0.1", 7070)) !== "in") continue
  }
  seen["public"] = await ask(one, "203.0.113.10", 8080)
  seen["refused"] = {
    "the host by its gateway": await ask(two, gateway, 9090),
    "the host by its own address": await ask(two, "10.9.9.1", 9090),
    "the private network": await ask(two, "10.9.9.2", 8080),
    "the resolver, but not for names": await ask(one, "10.9.9.2", 8080),
    "the metadata service": await ask(two, "169.254.169.254", 8080),
    "the other sandbox": await ask(one, address, 7070),
    "the other sandbox's gateway": await ask(one, gateway, 9090),
  }
  seen["not public"] = Object.fromEntries(
    await Promise.all(notPublic.map(async (host) => [host, await ask(two, host, 8080)] as const)),
  )
  seen["reachable from the host itself"] = await new Promise((resolve) => {
    const socket = connect(9090, "10.9.9.1", () => resolve("yes"))
    socket.on("error", (failure) => resolve(failure.message)).resume()
  })
  seen["from outside"] = { sandbox: await fromOutside(address, 7070), elsewhere: await fromOutside("10.8.8.2", 8080) }
  seen["names"] = [await sh(one, send("10.9.9.2", 53, "a")), await sh(two, send("10.9.9.2", 53, "b"))]
  // Nobody inside may do this; somebody who found a way still gets nowhere.
  const inside = `--net=/proc/${initPid(root, two.id)}/ns/net`
  for (const stolen of ["10.9.9.77", await addressOf(one)]) {
    execFileSync("nsenter", [inside, "ip", "addr", "add", `${stolen}/32`, "dev", "eth0"])
    await sh(two, send("203.0.113.10", 8081, "false", stolen))
  }
  await sh(two, send("203.0.113.10", 8081, "honest"))
  seen["heard"] = JSON.parse(await ask(two, "203.0.113.10", 8082))
  seen["version 6"] = await sh(two, "grep -v ' lo$' /proc/net/if_inet6")
  // Nor this: an address of version 6 on every device, and a machine that passes such packets on.
  versionSix(inside, deviceOf(gateway), outside.pid ?? 0)
  seen["answer to version 6"] = quiet(
    "nsenter",
    inside,
    "timeout",
    "2",
    "bash",
    "-c",
    `cat </dev/tcp/${six.outside}/8080`,
  )
  seen["answer to a ping"] = quiet("nsenter", inside, "perl", "-e", ping, "203.0.113.10")
  const three = await start()
  await sh(three, crowd("203.0.113.10", connectionsMax))
  seen["too many connections"] = [await ask(three, "203.0.113.10", 8080), await ask(two, "203.0.113.10", 8080)]
  await driver.destroy(three.id)
  seen["posture"] = (await two.posture()).network
  const { receivedBytes, sentBytes } = await two.stats()
  seen["counted"] = receivedBytes > 0 && sentBytes > 0

  // A restart, a new runner, a runner that lost its rules, and what a dead one left.
  await driver.stop(two.id, 0)
  seen["address after a restart"] = (await addressOf(await driver.start(two.id, never))) === address
  await driver[Symbol.asyncDispose]()
  execFileSync("nft", ["flush", "ruleset"])
  const mark = devices()[0]?.slice(3, 9) ?? ""
  ip("link", "add", `wrn${mark}ffff`, "type", "veth", "peer", "name", "stray")
  driver = await open()
  const adopted: Sandbox[] = []
  for await (const sandbox of driver.adopt(never)) adopted.push(sandbox)
  const again = adopted.find(({ id }) => id === two.id)
  const named = adopted.find(({ id }) => id === one.id)
  if (!again || !named) throw new Error("not adopted")
  seen["adopted"] = [
    await ask(again, "203.0.113.10", 8080),
    await ask(again, "10.9.9.2", 8080),
    await sh(named, send("10.9.9.2", 53, "c")),
    devices().length,
  ]
  await driver.destroy(one.id)
  seen["one left"] = [devices().length, tables() !== "", await ask(again, "203.0.113.10", 8080)]
  await driver.destroy(two.id)
  seen["after"] = [devices(), tables(), forwarding()]

  const times: Record<"none" | "bridge", number[]> = { none: [], bridge: [] }
  const kept = await start()
  for (let round = 0; round < 5; round++) {
    for (const mode of ["none", "bridge"] as const) {
      const spec = specOf(image, { limits, network: { mode } })
      await driver.create(spec, never)
      const begun = performance.now()
      await driver.start(spec.id, never)
      times[mode].push(performance.now() - begun)
      await driver.destroy(spec.id)
    }
  }
  await driver.destroy(kept.id)
  seen["startMs"] = { none: median(times.none), bridge: median(times.bridge) }
  seen["at the end"] = [devices(), tables(), forwarding()]
} finally {
  for await (const sandbox of driver.adopt(never)) await driver.destroy(sandbox.id)
  await driver[Symbol.asyncDispose]()
  onHost.close()
  outside.kill()
  elsewhere.kill()
}
console.log(JSON.stringify(seen))
