import type { Locator } from "playwright-core"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Warren } from "../warren.ts"
import { barriers } from "./accessible.ts"
import type { Person } from "./browser.ts"
import { FirstUser } from "./first-user.ts"

/** A loaded machine is no fault of the page. */
const patienceMs = 60_000
const name = "trunk"

let user: FirstUser
let warren: Warren
let one: Person
beforeAll(async () => {
  user = await FirstUser.signIn({ patienceMs })
  ;({ warren, one } = user)
  await ask("POST", "/v1/sessions", { name, network: { mode: "none" } })
}, 300_000)
afterAll(() => user?.[Symbol.asyncDispose](), 120_000)

const at = (path: string): string => `http://localhost:${warren.port}${path}`

// oxlint-disable-next-line typescript/no-explicit-any -- as it came
async function ask(method: string, path: string, body?: object): Promise<any> {
  const headers = { authorization: `Bearer ${await warren.token()}`, "content-type": "application/json" }
  const sent = body ? { body: JSON.stringify(body) } : {}
  const answer = await fetch(`http://127.0.0.1:${warren.port}${path}`, { method, headers, ...sent })
  if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`)
  return answer.json()
}

async function inside(session: string, command: string): Promise<string> {
  const { stdout } = await ask("POST", `/v1/sessions/${session}/exec`, { argv: ["sh", "-c", command] })
  return stdout as string
}

const said = (): Locator => one.page.locator('.chat [data-role="assistant"]')

/** Says something in the page, and waits until it was answered. */
async function say(text: string, answers: number): Promise<void> {
  await one.page.getByRole("textbox", { name: "Reply to the agent" }).fill(text)
  await one.page.keyboard.press("Enter")
  await said()
    .nth(answers - 1)
    .getByRole("button", { name: "Fork from this turn" })
    .waitFor({ state: "attached" })
}

describe("another way", { timeout: 180_000 }, () => {
  test("a session on its own is told how to have something to compare with", async () => {
    await one.page.goto(at(`/s/${name}/compare`))
    await one.page.getByRole("heading", { name: "Nothing to compare with" }).waitFor()
    expect(await barriers(one.page)).toEqual([])
  })

  test("from a turn: the fork knows what was said up to it, and has the files of then", async () => {
    await ask("POST", `/v1/sessions/${name}/agent`, { spec: { adapter: "scripted" } })
    await one.page.goto(at(`/s/${name}/files`))
    await inside(name, "echo first > ~/plan.txt")
    await say("the first thing", 1)
    await ask("POST", `/v1/sessions/${name}/snapshots`, {})
    await inside(name, "echo second > ~/plan.txt")
    await say("the second thing", 2)
    await said().first().hover()
    await said().first().getByRole("button", { name: "Fork from this turn" }).click()
    await one.page.getByRole("heading", { name: `Fork ${name} from this turn` }).waitFor()
    await one.shot("fork-from-a-turn")
    expect(await barriers(one.page)).toEqual([])
    await one.page.getByRole("button", { name: "Fork", exact: true }).click()
    await one.page.waitForURL((url) => !url.pathname.startsWith(`/s/${name}`))
    await one.page.locator('.chat [data-role="user"]').getByText("the first thing").waitFor()
    expect(await one.page.locator(".chat").getByText("the second thing").count()).toBe(0)
    const fork = new URL(one.page.url()).pathname.split("/")[2] ?? ""
    expect(await inside(fork, "cat ~/plan.txt")).toBe("first\n")
    await say("another way", 2)
    // It repeats what it was told: what it was not there for came first.
    await said().last().getByText("goes on from another session").waitFor()
    await ask("PATCH", `/v1/sessions/${fork}`, { name: "branch" })
  })

  test("is compared: the files that differ with their lines, and what was said side by side", async () => {
    await inside("branch", "echo third > ~/plan.txt; echo new > ~/extra.txt")
    await one.page.goto(at(`/s/${name}/compare?with=branch`))
    await one.page.getByText("2 files differ").waitFor()
    await one.page.getByRole("button", { name: /plan\.txt/ }).click()
    await one.page.locator(".diff [data-kind=gone]").getByText("second").waitFor()
    await one.page.locator(".diff [data-kind=new]").getByText("third").waitFor()
    await one.page
      .getByRole("button", { name: /extra\.txt/ })
      .getByText("only in branch")
      .waitFor()
    await one.shot("compare-files")
    expect(await barriers(one.page)).toEqual([])
    await one.page.getByRole("radio", { name: "Conversations" }).click()
    const column = (which: string): Locator => one.page.getByRole("region", { name: `What was said in ${which}` })
    await column(name).locator('[data-role="user"]').getByText("the second thing").waitFor()
    await column("branch").locator('[data-role="user"]').getByText("another way").waitFor()
    await one.shot("compare-conversations")
    expect(await barriers(one.page)).toEqual([])
  })

  test("three ways at once end in the comparison; a sleeper says so", async () => {
    await one.page.goto(at(`/s/${name}/files`))
    await said().last().hover()
    await said().last().getByRole("button", { name: "Fork from this turn" }).click()
    await one.page.getByRole("radio", { name: "3 ways" }).click()
    await one.page.getByRole("button", { name: "Fork", exact: true }).click()
    await one.page.waitForURL(/\/compare$/)
    await one.page.getByRole("heading", { name: "No file differs" }).waitFor()
    const options = await one.page.getByLabel("Compare with").locator("option").allTextContents()
    expect(options.filter((text) => text.includes("forked from the same"))).toHaveLength(3)
    expect(options.filter((text) => text.includes("its parent"))).toEqual([`${name} (its parent)`])
    await ask("POST", "/v1/sessions/branch/hibernate", {})
    await one.page.getByLabel("Compare with").selectOption("branch")
    await one.page.getByText("The files of branch are here again when it is awake").waitFor()
    await one.page.getByRole("button", { name: "Wake it" }).click()
    await one.page.getByText("2 files differ").waitFor()
  })

  test("nothing of all this made the browser complain", () => expect(one.complaints).toEqual([]))
})
