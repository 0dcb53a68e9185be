import { Sandbox } from "@e2b/code-interpreter"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { E2bSystem } from "./system.ts"

const system = await E2bSystem.start()
afterAll(() => system[Symbol.asyncDispose]())

describe("code", () => {
  let sandbox: Sandbox
  beforeAll(async () => {
    sandbox = await Sandbox.create({ ...system.options, timeoutMs: 600_000 })
  })
  afterAll(() => sandbox.kill())

  test("in Python: what it prints, the last expression, and what stays", async () => {
    const first = await sandbox.runCode("x = 40\nprint('hällo')\nimport sys; print('to err', file=sys.stderr)\nx + 2")
    expect(first.text).toBe("42")
    expect(first.logs.stdout.join("")).toBe("hällo\n")
    expect(first.logs.stderr.join("")).toBe("to err\n")
    expect(first.error).toBeUndefined()
    expect(first.executionCount).toBe(1)
    const second = await sandbox.runCode("x += 1; x")
    expect([second.text, second.executionCount]).toEqual(["41", 2])
    expect((await sandbox.runCode("'quoted'")).text).toBe("quoted")
    expect((await sandbox.runCode("y = 1")).results).toEqual([])
    expect((await sandbox.runCode("import asyncio\nawait asyncio.sleep(0)\n'awaited'")).text).toBe("awaited")
    expect(
      (await sandbox.runCode("import subprocess; subprocess.run(['echo', 'from a child']); None")).logs.stdout.join(""),
    ).toBe("from a child\n")
  })

  test("is told as it comes", async () => {
    const heard: string[] = []
    await sandbox.runCode("for i in range(3): print(i)\n'end'", {
      onStdout: ({ line }) => void heard.push(line),
      onResult: (result) => void heard.push(`result ${result.text}`),
    })
    expect(heard.join("")).toBe("0\n1\n2\nresult end")
  })

  test("that fails says where", async () => {
    const { error, logs } = await sandbox.runCode("print('before')\ndef broken():\n  return 1 / 0\nbroken()")
    expect(error).toMatchObject({ name: "ZeroDivisionError", value: "division by zero" })
    expect(error?.traceback).toContain("return 1 / 0")
    expect(logs.stdout).toEqual(["before\n"])
    expect((await sandbox.runCode("def (:")).error?.name).toBe("SyntaxError")
    expect((await sandbox.runCode("'still there'")).text).toBe("still there")
  })

  test("shows results in all their forms", async () => {
    const { results } = await sandbox.runCode(`
from IPython.display import display, HTML, Markdown
class Rich:
  def _repr_html_(self): return "<b>bold</b>"
  def _repr_png_(self): return b"\\x89PNG"
  def _repr_json_(self): return {"a": 1}
  def __repr__(self): return "plain"
display(HTML("<i>shown</i>"))
display(Markdown("# title"))
Rich()`)
    expect(results.map(({ isMainResult }) => isMainResult)).toEqual([false, false, true])
    expect(results[0]?.html).toBe("<i>shown</i>")
    expect(results[1]?.markdown).toBe("# title")
    expect(results[2]).toMatchObject({
      html: "<b>bold</b>",
      png: Buffer.from("\x89PNG", "latin1").toString("base64"),
      json: { a: 1 },
      text: "plain",
    })
    expect(results[2]?.formats()).toEqual(["html", "png", "json"])
  })

  test("in JavaScript, with what it awaits and imports", async () => {
    const run = (code: string) => sandbox.runCode(code, { language: "js" })
    const first = await run("const base = 40; console.log('hallo'); console.error('err'); base + 2")
    expect([first.text, first.logs.stdout.join(""), first.logs.stderr.join("")]).toEqual(["42", "hallo\n", "err\n"])
    expect((await run("base * 2")).text).toBe("80")
    expect((await run("await Promise.resolve('awaited')")).text).toBe("awaited")
    expect((await run('import { basename } from "node:path"\nbasename("/a/b.txt")')).text).toBe("b.txt")
    expect((await run("({ a: [1, 2] })")).text).toBe("{ a: [ 1, 2 ] }")
    expect((await run("undefinedName")).error).toMatchObject({
      name: "ReferenceError",
      value: "undefinedName is not defined",
    })
    const shown = await run(
      "({ [Symbol.for('Jupyter.display')]: () => ({ 'text/html': '<b>js</b>', 'text/plain': 'p' }) })",
    )
    expect(shown.results[0]).toMatchObject({ html: "<b>js</b>", text: "p", isMainResult: true })
  })

  test("has contexts of its own: apart, listed, restarted, removed", async () => {
    const one = await sandbox.createCodeContext({ cwd: "/tmp" })
    const other = await sandbox.createCodeContext({ language: "javascript" })
    expect(one).toMatchObject({ language: "python", cwd: "/tmp" })
    await sandbox.runCode("z = 'mine'", { context: one })
    expect((await sandbox.runCode("import os; (z, os.getcwd())", { context: one })).text).toBe("('mine', '/tmp')")
    expect((await sandbox.runCode("z")).error?.name).toBe("NameError")
    const ids = (await sandbox.listCodeContexts()).map(({ id }) => id)
    expect(ids).toEqual(expect.arrayContaining([one.id, other.id]))
    await sandbox.restartCodeContext(one)
    expect((await sandbox.runCode("z", { context: one })).error?.name).toBe("NameError")
    await sandbox.removeCodeContext(other)
    await expect(sandbox.runCode("1", { context: other })).rejects.toThrow("not found")
    await expect(sandbox.createCodeContext({ language: "cobol" })).rejects.toThrow("400")
    await expect(sandbox.createCodeContext({ cwd: "/no/such" })).rejects.toThrow("400")
  })

  test("that takes too long is interrupted, and the kernel lives", async () => {
    await sandbox.runCode("kept = 'yes'")
    await expect(sandbox.runCode("while True: print('.', end='', flush=True)", { timeoutMs: 1_000 })).rejects.toThrow(
      "timed out",
    )
    expect((await sandbox.runCode("kept")).text).toBe("yes")
  })

  test("whose kernel dies is told so, and the next has a new one", async () => {
    const died = await sandbox.runCode("import os; os._exit(3)")
    expect(died.error?.name).toBe("KernelDied")
    expect((await sandbox.runCode("1 + 1")).text).toBe("2")
    expect((await sandbox.runCode("import os; os.environ['GIVEN']", { envs: { GIVEN: "once" } })).text).toBe("once")
    expect((await sandbox.runCode("os.environ.get('GIVEN', 'gone')")).text).toBe("gone")
  })

  test("is run for whoever has the token, and for nobody else", async () => {
    const headers = {
      "e2b-sandbox-id": sandbox.sandboxId,
      "e2b-sandbox-port": "49999",
      "content-type": "application/json",
    }
    const answer = await fetch(`${system.options.sandboxUrl}/execute`, {
      method: "POST",
      headers,
      body: '{"code":"1"}',
    })
    expect(answer.status).toBe(403)
  })
})
