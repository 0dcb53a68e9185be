import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Warren } from "../warren.ts"
import { barriers } from "./accessible.ts"
import type { Chromium, Person } from "./browser.ts"
import { FirstUser } from "./first-user.ts"

/** A loaded machine is no fault of the page. */
const patienceMs = 30_000
const name = "garden"

let user: FirstUser
let warren: Warren
let one: Person
let chromium: Chromium
beforeAll(async () => {
  user = await FirstUser.signIn({ patienceMs, person: { permissions: ["clipboard-read", "clipboard-write"] } })
  ;({ warren, one, chromium } = user)
  const made = await ask("/v1/sessions", { name, network: { mode: "proxy", allow: ["example.org"] } })
  expect(made.status, await made.clone().text()).toBeLessThan(300)
}, 300_000)
afterAll(() => user?.[Symbol.asyncDispose](), 120_000)

const origin = (): string => `http://localhost:${warren.port}`

async function ask(path: string, body?: object, token?: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${warren.port}${path}`, {
    method: body ? "POST" : "GET",
    headers: { authorization: `Bearer ${token ?? (await warren.token())}`, "content-type": "application/json" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
}

/** What a program inside prints. */
async function inside(command: string): Promise<string> {
  const answer = await ask(`/v1/sessions/${name}/exec`, { argv: ["sh", "-c", command], cwd: "/home/user" })
  return ((await answer.json()) as { stdout: string }).stdout
}

/** Opens a place as a link does, and looks at it as those do who cannot see. */
async function open({ page }: Person, path: string, heading: string | RegExp): Promise<void> {
  await page.goto(origin() + path)
  await page.getByRole("heading", { name: heading }).first().waitFor()
}

/** Run in the browser: by how much something has to be moved sideways to be seen. */
const tooWide = ({ scrollWidth, clientWidth }: { scrollWidth: number; clientWidth: number }): number =>
  scrollWidth - clientWidth

async function seen(person: Person, shot: string): Promise<void> {
  await person.shot(shot)
  expect(await barriers(person.page), shot).toEqual([])
}

describe("what is inside a session", () => {
  test("a file is made, edited and saved; what somebody else writes is shown; it is renamed and deleted", async () => {
    const { page } = one
    await page.goto(`${origin()}/s/${name}/files`)
    await page.getByRole("button", { name: "New file", exact: true }).click()
    await page.getByRole("textbox", { name: "Name" }).fill("notes/hello.ts")
    await page.getByRole("button", { name: "Make it" }).click()
    const editor = page.getByRole("textbox", { name: /Text of .*hello\.ts/ })
    await editor.click()
    await page.keyboard.type("export const answer: number = 42 // of course")
    await page
      .getByRole("img", { name: "not saved" })
      .or(page.getByRole("button", { name: "Save", exact: true }))
      .first()
      .waitFor()
    await page.keyboard.press("Control+s")
    await page.getByRole("button", { name: "Saved" }).waitFor()
    expect(await inside("cat notes/hello.ts")).toContain("answer: number = 42")
    await page.getByRole("button", { name: "notes", exact: true }).click()
    await page.getByRole("button", { name: "hello.ts", exact: true }).waitFor()
    await seen(one, "files")
    await inside("echo '// from inside' > notes/hello.ts")
    await editor.getByText("// from inside").waitFor()
    await page.getByRole("button", { name: "Actions for hello.ts" }).click()
    await page.getByRole("menuitem", { name: "Rename…" }).click()
    await page.getByRole("textbox", { name: "Name" }).fill("bye.ts")
    await page.getByRole("button", { name: "Rename", exact: true }).click()
    await page.getByRole("textbox", { name: /Text of .*bye\.ts/ }).waitFor()
    await page.getByRole("button", { name: "Actions for bye.ts" }).click()
    await page.getByRole("menuitem", { name: "Delete…" }).click()
    await page.getByRole("button", { name: "Delete it" }).click()
    await page.getByRole("heading", { name: "Choose a file" }).waitFor()
    expect(await inside("ls notes")).toBe("")
  })

  test("what is not saved is not lost by a click elsewhere", async () => {
    const { page } = one
    await inside("echo one > one.txt; echo two > two.txt")
    await page.goto(`${origin()}/s/${name}/files`)
    await page.getByRole("button", { name: "one.txt", exact: true }).click()
    await page.getByRole("textbox", { name: /Text of .*one\.txt/ }).click()
    await page.keyboard.press("Control+Home")
    await page.keyboard.type("typed ")
    await page.getByRole("button", { name: "two.txt", exact: true }).click()
    await page.getByRole("heading", { name: "What you changed is not saved" }).waitFor()
    await page.getByRole("button", { name: "Keep it" }).click()
    await page
      .getByRole("textbox", { name: /Text of .*one\.txt/ })
      .getByText("typed one")
      .waitFor()
    await page.getByRole("button", { name: "two.txt", exact: true }).click()
    await page.getByRole("button", { name: "Leave without saving" }).click()
    await page.getByRole("textbox", { name: /Text of .*two\.txt/ }).waitFor()
    expect(await inside("cat one.txt")).toBe("one\n")
  })

  test("files are brought in by dropping them, and taken out", async () => {
    const { page } = one
    await page.goto(`${origin()}/s/${name}/files`)
    await page.locator(".folder[data-root] .file-line").first().waitFor()
    // As text: tests are compiled without a browser's types.
    const dropped = await page.evaluateHandle(`(() => {
      const data = new DataTransfer()
      data.items.add(new File(["dropped here"], "dropped.txt"))
      return data
    })()`)
    await page.dispatchEvent(".folder[data-root]", "drop", { dataTransfer: dropped })
    await page.getByRole("button", { name: "dropped.txt", exact: true }).waitFor()
    expect(await inside("cat dropped.txt")).toBe("dropped here")
    await page.getByRole("button", { name: "Actions for dropped.txt" }).click()
    const [taken] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name: "Download" }).click(),
    ])
    expect(taken.suggestedFilename()).toBe("dropped.txt")
  })

  test("changes are those of git, file by file", async () => {
    const { page } = one
    await page.goto(`${origin()}/s/${name}/changes`)
    await page.getByRole("heading", { name: "No repository here" }).waitFor()
    await inside(
      "git init -q -b main . && git add one.txt && git -c user.name=a -c user.email=a@b commit -qm first && echo more >> one.txt",
    )
    await page.getByRole("button", { name: /one\.txt/ }).click()
    await page.locator(".diff [data-kind=new]", { hasText: "more" }).waitFor()
    await page.getByRole("button", { name: /dropped\.txt/ }).waitFor()
    await seen(one, "changes")
  })

  test("details say how it is shut in, and a refused host is allowed with a click", async () => {
    const { page } = one
    await inside("curl -s -m 5 https://refused.example/ || true")
    await page.goto(`${origin()}/s/${name}/terminal`)
    await page.getByRole("tab", { name: "Details", exact: true }).click()
    await page.getByText("Cannot gain privileges").click()
    await page.getByText("NoNewPrivs: 1").waitFor()
    await page.getByRole("img", { name: /^Memory: \d/ }).waitFor()
    await page.locator(".usage-plot polyline").first().waitFor({ state: "attached" })
    await page.getByRole("button", { name: "Allow this host" }).click()
    await page.getByText("allowed now").waitFor()
    const { network } = (await (await ask(`/v1/sessions/${name}`)).json()) as { network: { allow: string[] } }
    expect(network.allow).toEqual(["example.org", "refused.example"])
    await seen(one, "details")
  })

  test("a snapshot is taken, gone back to, and forked", async () => {
    const { page } = one
    await page.goto(`${origin()}/s/${name}/details`)
    await page.getByRole("button", { name: "Take one" }).click()
    await page.getByRole("button", { name: "Go back" }).waitFor()
    await inside("echo later > one.txt")
    await page.getByRole("button", { name: "Go back" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Go back" }).click()
    await page.getByText("Its files are as they were").waitFor()
    expect(await inside("cat one.txt")).toBe("one\nmore\n")
    await page.getByRole("button", { name: "Fork", exact: true }).click()
    await page.waitForURL((url) => url.pathname.endsWith("/files") && !url.pathname.includes(`/${name}/`))
    await page.getByRole("button", { name: "one.txt", exact: true }).waitFor()
  })

  test("an editor and a desktop that the image lacks say what to do", async () => {
    const { page } = one
    for (const view of ["editor", "desktop"]) {
      await page.goto(`${origin()}/s/${name}/${view}`)
      await page
        .getByRole("heading", { name: /is not in this image|editor is ready/ })
        .or(page.locator(".screen canvas, .service-frame"))
        .first()
        .waitFor()
      await seen(one, view)
    }
  })
})

describe("the pages", () => {
  test("a secret is sealed, and never shown", async () => {
    const { page } = one
    await open(one, "/secrets", "No secrets yet")
    await seen(one, "secrets-empty")
    await page.getByRole("button", { name: "New secret" }).click()
    await page.getByRole("textbox", { name: "Name" }).fill("GARDEN_KEY")
    await page.getByLabel("Value").fill("canary-in-a-secret")
    await page.getByRole("button", { name: "Seal it" }).click()
    await page.getByRole("cell", { name: "GARDEN_KEY", exact: true }).waitFor()
    await seen(one, "secrets")
    expect(await page.content()).not.toContain("canary-in-a-secret")
    const { items } = (await (await ask("/v1/secrets")).json()) as { items: { name: string }[] }
    expect(items.map((secret) => secret.name)).toEqual(["GARDEN_KEY"])
    await page.getByRole("button", { name: "Forget GARDEN_KEY" }).click()
    await page.getByRole("button", { name: "Forget it" }).click()
    await page.getByRole("heading", { name: "No secrets yet" }).waitFor()
  })

  test("a workspace is made, and opened in a session", async () => {
    const { page } = one
    await open(one, "/workspaces", "No workspaces yet")
    await page.getByRole("button", { name: "New workspace" }).click()
    await page.getByRole("textbox", { name: "Name" }).fill("shed")
    await page.getByLabel("At most, in GiB").fill("1")
    await page.getByRole("button", { name: "Make it" }).click()
    await page.getByRole("cell", { name: "shed", exact: true }).waitFor()
    await page.getByRole("button", { name: "Measure shed" }).click()
    await page.getByText(/of 1\.1 GB/).waitFor()
    await seen(one, "workspaces")
    await page.getByRole("button", { name: "Open in a session" }).click()
    await page.waitForURL(/\/s\/[\w-]+\/files$/)
    await page.getByRole("button", { name: "workspace", exact: true }).waitFor()
  })

  test("something is remembered, found and forgotten", async () => {
    const { page } = one
    await open(one, "/memories", "Nothing is remembered yet")
    await page.getByRole("button", { name: "Remember something" }).click()
    await page.getByLabel("Text").fill("Tomatoes are watered in the morning.")
    await page.getByLabel("Tags").fill("garden water")
    await page.getByRole("button", { name: "Remember it" }).click()
    await page.locator(".memory", { hasText: "Tomatoes are watered" }).waitFor()
    await seen(one, "memories")
    await page.getByLabel("Search memories").fill("cucumbers")
    await page.getByRole("heading", { name: /Nothing is remembered about/ }).waitFor()
    await page.getByLabel("Search memories").fill("tomatoes")
    await page.locator(".memory", { hasText: "Tomatoes are watered" }).waitFor()
    await page.getByRole("button", { name: "Forget this" }).click()
    await page.locator(".memory", { hasText: "Tomatoes are watered" }).waitFor({ state: "detached" })
  })

  test("images are listed, and one that cannot be pulled says why", async () => {
    const { page } = one
    await open(one, "/images", "Images")
    await page.getByRole("cell", { name: /host/ }).first().waitFor()
    await page.getByLabel("Bring one from a registry").fill("127.0.0.1:9/nobody/here:1")
    await page.getByRole("button", { name: "Pull" }).click()
    await page.getByRole("button", { name: "Dismiss" }).waitFor()
    await seen(one, "images")
  })

  test("a token is told once, with snippets, works, and is revoked", async () => {
    const { page } = one
    await open(one, "/settings/tokens", "No tokens yet")
    await page.getByRole("button", { name: "New token" }).click()
    await page.getByLabel("Name", { exact: true }).fill("ci")
    await page.getByRole("radio", { name: "Only look" }).click()
    await seen(one, "token-dialog")
    await page.getByRole("button", { name: "Make token" }).click()
    const token = (await page.locator("[data-told]").textContent()) ?? ""
    expect(token).toMatch(/^wrn_/)
    await page.getByRole("radio", { name: "curl" }).click()
    await page.locator(".snippet pre", { hasText: `Bearer ${token}` }).waitFor()
    await seen(one, "token-told")
    expect((await ask("/v1/sessions", undefined, token)).status).toBe(200)
    expect((await ask("/v1/sessions", { name: "never" }, token)).status).toBe(403)
    await page.getByRole("button", { name: "I have it" }).click()
    await page.getByRole("cell", { name: "only look" }).waitFor()
    await seen(one, "tokens")
    await page.getByRole("button", { name: "Revoke ci" }).click()
    await page.getByRole("button", { name: "Revoke it" }).click()
    await page.getByRole("heading", { name: "No tokens yet" }).waitFor()
    expect((await ask("/v1/sessions", undefined, token)).status).toBe(401)
  })

  test("an account shows its sign-ins, and a password signs in elsewhere", async () => {
    const { page } = one
    await open(one, "/settings", "Settings")
    await page.getByText("this one").waitFor()
    await page.getByLabel("New password").fill("correct horse battery")
    await page.getByRole("button", { name: "Set password" }).click()
    await page.getByText("The password is set").waitFor()
    const { user } = (await (await ask("/v1/account")).json()) as { user: { name: string } }
    const known = { name: user.name, password: "correct horse battery" }
    expect((await ask("/v1/login/password", known)).status).toBe(200)
    await seen(one, "account")
  })
})

describe("those who manage users", () => {
  test("invite somebody, who sees nothing of the first", async () => {
    const { page } = one
    await open(one, "/admin/invites", "Invite somebody")
    await page.getByRole("button", { name: "Make a link" }).click()
    const link = (await page.locator("[data-told]").textContent()) ?? ""
    await seen(one, "invites")
    await using bob = await chromium.person()
    bob.page.setDefaultTimeout(patienceMs)
    await bob.page.goto(link)
    await bob.page.getByRole("textbox", { name: "Name" }).fill("bob")
    await bob.page.getByLabel("Password for next time").fill("battery staple horse")
    await bob.page.getByRole("button", { name: "Join" }).click()
    await bob.page.getByText("bob", { exact: true }).waitFor()
    await bob.page.getByRole("heading", { name: "You have no runner on this machine" }).waitFor()
    await bob.shot("bob")
    expect(await bob.page.getByText(name).count()).toBe(0)
    expect(await bob.page.getByRole("link", { name: "Admin" }).count()).toBe(0)
    await bob.page.goto(`${origin()}/admin/users`)
    await bob.page.getByRole("heading", { name: "This is for admins" }).waitFor()
    await bob.page.goto(`${origin()}/s/${name}/files`)
    const status = await bob.page.evaluate(async (path) => (await fetch(path)).status, `/v1/sessions/${name}`)
    expect([403, 404, 503]).toContain(status)
    await bob.page.getByRole("heading", { name: "You have no runner on this machine" }).waitFor()
    await seen(bob, "bob-at-the-session")
    expect(await bob.page.getByRole("tab").count()).toBe(0)
  })

  test("set a quota, disable, and delete", async () => {
    const { page } = one
    await open(one, "/admin", "Users")
    await page.getByRole("button", { name: "Actions for bob" }).click()
    await page.getByRole("menuitem", { name: "Quota…" }).click()
    await page.getByRole("spinbutton", { name: "Sessions" }).fill("3")
    await page.getByRole("button", { name: "Set quota" }).click()
    await page.getByRole("dialog").waitFor({ state: "detached" })
    expect(await (await ask("/v1/users/bob/quota")).json()).toMatchObject({ sessionsMax: 3 })
    await page.getByRole("button", { name: "Actions for bob" }).click()
    await page.getByRole("menuitem", { name: "Disable" }).click()
    await page.getByText("disabled").waitFor()
    await seen(one, "users")
    await page.getByRole("button", { name: "Actions for bob" }).click()
    await page.getByRole("menuitem", { name: "Delete…" }).click()
    await page.getByRole("button", { name: "Delete user" }).click()
    await page.getByRole("cell", { name: "bob", exact: true }).waitFor({ state: "detached" })
  })

  test("read what was done, verify it, and take it with them", async () => {
    const { page } = one
    await open(one, "/admin/audit", "Audit log")
    await page.getByRole("button", { name: "Verify" }).click()
    await page.getByText(/^whole: \d+ entries$/).waitFor()
    await page.getByLabel("Narrow the log").fill("user.delete")
    await page.getByRole("row").filter({ hasText: "user.delete" }).first().waitFor()
    await page.getByRole("row").filter({ hasText: "session.create" }).first().waitFor({ state: "detached" })
    await seen(one, "audit")
    const [taken] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Export" }).click(),
    ])
    expect(taken.suggestedFilename()).toBe("audit.jsonl")
  })

  test("in daylight and on a phone, too", async () => {
    const state = await one.cookies
    await using phone = await chromium.person({
      ...{ storageState: state, viewport: { width: 390, height: 780 }, colorScheme: "light" },
    })
    phone.page.setDefaultTimeout(patienceMs)
    for (const [path, heading] of [
      ["/secrets", "Secrets"],
      ["/settings/tokens", "Tokens"],
      [`/s/${name}/details`, "Isolation"],
    ] as const) {
      await open(phone, path, heading)
      await seen(phone, `phone${path.replaceAll("/", "-")}`)
    }
    const inSession = ["files", "changes", "preview"].map((tab) => `/s/${name}/${tab}`)
    const places = ["/", "/new", "/images", "/workspaces", "/memories", "/settings", "/admin", "/admin/invites"]
    for (const path of [...places, "/admin/audit", ...inSession]) {
      await phone.page.goto(origin() + path)
      await phone.page.locator("h1, h2").first().waitFor()
      await phone.page.getByText("Reading…").waitFor({ state: "detached" })
      await phone.shot(`phone${path === "/" ? "-home" : path.replaceAll("/", "-")}`)
      expect([path, await phone.page.locator(".page, .pane").last().evaluate(tooWide)]).toEqual([path, 0])
    }
    expect(phone.complaints.filter((text) => !/status of (409|422)/.test(text))).toEqual([])
  })

  test("nothing of all this made the browser complain", () => {
    // Answers that are shown as what they are: an image lacks an editor; a look at a session met it on its way back.
    expect(one.complaints.filter((text) => !/status of (409|422)/.test(text))).toEqual([])
  })
})
