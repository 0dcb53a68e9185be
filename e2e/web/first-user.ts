import { Scope } from "@warren/base/scope.ts"
import { Warren } from "../warren.ts"
import { Chromium, printedLink, type Person } from "./browser.ts"

interface FirstUserOptions {
  /** The name the page is opened by. */
  readonly host?: string
  readonly patienceMs: number
  readonly person?: Parameters<Chromium["person"]>[0]
}

/** A Warren of its own, and whoever started it at a browser, signed in by the printed link. */
export class FirstUser implements AsyncDisposable {
  readonly warren: Warren
  readonly chromium: Chromium
  readonly one: Person
  readonly #scope: Scope

  private constructor(scope: Scope, warren: Warren, chromium: Chromium, one: Person) {
    this.#scope = scope
    this.warren = warren
    this.chromium = chromium
    this.one = one
  }

  static async signIn({ host = "localhost", patienceMs, person }: FirstUserOptions): Promise<FirstUser> {
    const scope = new Scope()
    try {
      const warren = scope.use(await Warren.start())
      const chromium = scope.use(await Chromium.open())
      const one = await chromium.person(person)
      one.page.setDefaultTimeout(patienceMs)
      const link = new URL(printedLink(warren.said))
      link.hostname = host
      await one.page.goto(link.href)
      await one.page.getByRole("heading", { name: /Welcome/ }).waitFor()
      return new FirstUser(scope, warren, chromium, one)
    } catch (failure) {
      await scope.close()
      throw failure
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.close()
  }
}
