import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { ownHost } from "../gateway/door.ts"
import { ManyUsers, runnerOf } from "../users/machine.ts"
import { barriers } from "./accessible.ts"
import { Chromium, type Person } from "./browser.ts"

/** A loaded machine is no fault of the page. */
const patienceMs = 60_000
const inside = 8000
const secret = "of alice alone"
const server = `require("node:http").createServer((q, a) => a.end("<h1>${secret}</h1>")).listen(${inside}, "127.0.0.1")`

/** Run in the browser: opens a terminal as the page does, and says how that ended. */
const attach = `(path) => new Promise((done) => {
  const socket = new WebSocket(location.origin.replace("http", "ws") + path)
  socket.onopen = () => socket.send("{}")
  socket.onmessage = ({ data }) => done(typeof data === "string" && data.includes("fault") ? "refused" : "open")
  socket.onclose = () => done("refused")
})`

describe.skipIf(process.getuid?.() !== 0)("people with runners of their own, and without", { timeout: 240_000 }, () => {
  let machine: ManyUsers
  let chromium: Chromium
  let alice: Person
  let bob: Person
  let session = ""

  const origin = (): string => `http://localhost:${machine.port}`
  /** A browser of somebody who came with an invite, as people do; with a name, it is for a user who is known already. */
  const arrived = async (named?: string): Promise<Person> => {
    const body = named === undefined ? {} : { name: named }
    const invite = await machine.ask("/v1/invites", { token: await machine.rootToken(), body })
    const person = await chromium.person()
    person.page.setDefaultTimeout(patienceMs)
    await person.page.goto(`${origin()}/join#${String(invite.body["code"])}`)
    return person
  }
  const joined = async (who: string): Promise<Person> => {
    const person = await arrived()
    await person.page.getByRole("textbox", { name: "Name" }).fill(machine.name(who))
    await person.page.getByLabel("Password for next time").fill("correct horse battery")
    await person.page.getByRole("button", { name: "Join" }).click()
    await person.page.getByRole("heading", { name: "You have no runner on this machine" }).waitFor()
    return person
  }
  const seen = async (person: Person, shot: string): Promise<void> => {
    await person.shot(shot)
    expect(await barriers(person.page), shot).toEqual([])
  }
  const statusOf = ({ page }: Person, path: string): Promise<number> =>
    page.evaluate(async (asked) => (await fetch(asked)).status, path)

  beforeAll(async () => {
    machine = await ManyUsers.open()
    chromium = await Chromium.open()
    for (const who of ["alice", "bob"]) {
      const made = await machine.cli.run(["user", "create", machine.name(who)])
      expect(made.stderr, made.stderr).toBe("")
    }
    alice = await arrived(machine.name("alice"))
    bob = await arrived(machine.name("bob"))
  }, 240_000)
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await machine?.[Symbol.asyncDispose]()
  }, 120_000)

  test("what alice has is live in both of her browsers", async () => {
    await alice.page.getByRole("button", { name: /Empty sandbox/ }).click()
    await alice.page.waitForURL(/\/s\/[\w-]+\/terminal$/)
    await alice.page.locator(".xterm-rows").getByText("$").first().waitFor()
    await using second = await chromium.person({ storageState: await alice.cookies })
    second.page.setDefaultTimeout(patienceMs)
    await second.page.goto(alice.page.url())
    await second.page.locator(".xterm-rows").getByText("$").first().waitFor()
    await alice.page.keyboard.type(`echo her-$((40+2)); node -e '${server}' &\n`)
    await second.page.locator(".xterm-rows").getByText("her-42").first().waitFor()
    const name = new URL(alice.page.url()).pathname.split("/")[2] ?? ""
    session = await alice.page.evaluate(async (path) => {
      return ((await (await fetch(path)).json()) as { id: string }).id
    }, `/v1/sessions/${name}`)
    expect(session).toMatch(/^ses_/)
    expect([alice.complaints, second.complaints]).toEqual([[], []])
  })

  test("bob, in a third, sees nothing of it: not in the list, not by its link", async () => {
    const { page } = bob
    const name = new URL(alice.page.url()).pathname.split("/")[2] ?? ""
    await page.getByRole("heading", { name: "Welcome. What shall it be?" }).waitFor()
    expect(await page.getByText(name).count()).toBe(0)
    for (const which of [name, session]) {
      await page.goto(`${origin()}/s/${which}/terminal`)
      await page.getByRole("heading", { name: `There is no session ${which}` }).waitFor()
      expect(await page.getByRole("tab").count()).toBe(0)
    }
    await seen(bob, "bob-at-alices-session")
  })

  test("nor by her API, her terminal or her preview", async () => {
    const { page } = bob
    const before = bob.complaints.length
    for (const path of ["", "/files?path=/", "/snapshots"])
      expect([path, await statusOf(bob, `/v1/sessions/${session}${path}`)]).toEqual([path, 404])
    const feed = await page.evaluate(async (path) => (await fetch(path)).text(), `/v1/sessions/${session}/feed`)
    expect(feed).toMatch(/^event: fault\ndata: .*not_found/)
    const terminal = `/v1/sessions/${session}/terminals/main/attach`
    expect(await page.evaluate(`(${attach})(${JSON.stringify(terminal)})`)).toBe("refused")
    expect(await alice.page.evaluate(`(${attach})(${JSON.stringify(terminal)})`)).toBe("open")
    for (const address of [
      `${origin()}/s/${session}/t/${inside}/`,
      `http://${ownHost(session, inside, machine.port)}/`,
    ]) {
      const answer = await page.goto(address)
      expect([address, (answer?.status() ?? 0) >= 400]).toEqual([address, true])
      expect(await page.content()).not.toContain(secret)
    }
    // What was refused is in the browser's console, where it belongs.
    bob.complaints.splice(before)
  })

  test("somebody who has no runner is told so and what to do; when there is one the page goes on by itself", async () => {
    const carol = await joined("carol")
    const { page } = carol
    await page.getByRole("heading", { name: "You have no runner on this machine" }).waitFor()
    await page.getByText(/ask an administrator/i).waitFor()
    await seen(carol, "no-runner")
    for (const path of ["/s/never-was", "/new", "/secrets"]) {
      await page.goto(origin() + path)
      await page.getByRole("heading", { name: "You have no runner on this machine" }).waitFor()
    }
    await page.goto(`${origin()}/settings`)
    await page.getByText("this one").waitFor()
    await page.goto(origin())
    await page.getByRole("heading", { name: "You have no runner on this machine" }).waitFor()
    const made = await machine.cli.run(["user", "create", machine.name("carol")])
    expect(made.stderr, made.stderr).toBe("")
    await page.getByRole("heading", { name: "Welcome. What shall it be?" }).waitFor()
  })

  test("who signs in after alice, in her browser, sees nothing of hers either", async () => {
    const name = new URL(alice.page.url()).pathname.split("/")[2] ?? ""
    await using _dave = await joined("dave")
    await using kiosk = await arrived(machine.name("alice"))
    const { page } = kiosk
    await page
      .getByRole("link", { name: new RegExp(name) })
      .first()
      .waitFor()
    await page.getByRole("button", { name: "Account" }).click()
    await page.getByRole("menuitem", { name: "Sign out" }).click()
    await page.getByLabel("Name").fill(machine.name("dave"))
    await page.getByLabel("Password").fill("correct horse battery")
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByRole("heading", { name: "You have no runner on this machine" }).waitFor()
    expect(await page.getByText(name).count()).toBe(0)
  })

  test("a runner that hangs is told of, at the first look and later, and what is shown goes on when it does", async () => {
    const { page } = bob
    await page.goto(origin())
    await page.getByRole("heading", { name: "Welcome. What shall it be?" }).waitFor()
    const runner = runnerOf(machine.name("bob"))
    process.kill(runner, "SIGSTOP")
    try {
      await page.locator(".connection-bar", { hasText: "Your runner does not answer" }).waitFor()
      await bob.shot("runner-lost")
      await page.reload()
      await page.getByRole("heading", { name: "Your runner does not answer" }).waitFor()
      await seen(bob, "runner-hangs")
    } finally {
      process.kill(runner, "SIGCONT")
    }
    await page.getByRole("heading", { name: "Welcome. What shall it be?" }).waitFor()
    await page.getByText("Your runner does not answer").waitFor({ state: "detached" })
    await page.getByRole("button", { name: /Empty sandbox/ }).click()
    await page.locator(".xterm-rows").getByText("$").first().waitFor()
  })
})
