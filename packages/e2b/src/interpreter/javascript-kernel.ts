/** The same for JavaScript: Node's own REPL keeps what was defined, and awaits at the top. */
export const javascriptKernel = String.raw`
"use strict"
const fs = require("node:fs")
const repl = require("node:repl")
const { PassThrough } = require("node:stream")
const { inspect } = require("node:util")
const readline = require("node:readline")

const askFd = Number(process.env.WARREN_ASK)
const sayFd = Number(process.env.WARREN_SAY)
delete process.env.WARREN_ASK
delete process.env.WARREN_SAY
const mark = Buffer.from("\0warren-end\0")
const mimes = {
  "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpeg",
  "application/pdf": "pdf", "text/latex": "latex", "application/json": "json", "application/javascript": "javascript",
  "text/plain": "text",
}

function writeAll(fd, bytes) {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += fs.writeSync(fd, bytes, at)
    } catch (failure) {
      if (failure.code !== "EAGAIN") throw failure
    }
  }
}

const say = (message) => writeAll(sayFd, Buffer.from(JSON.stringify(message).replace(/[^\x20-\x7e]/g, escaped) + "\n"))
const escaped = (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")

async function formsOf(value) {
  const forms = { text: typeof value === "string" ? value : inspect(value) }
  const own = value !== null && typeof value === "object" && value[Symbol.for("Jupyter.display")]
  if (typeof own !== "function") return forms
  for (const [mime, content] of Object.entries((await own.call(value)) ?? {})) forms[mimes[mime] ?? mime] = content
  return forms
}

const show = async (value, isMain) => say({ type: "result", is_main_result: isMain, ...(await formsOf(value)) })

const nowhere = new PassThrough()
nowhere.resume()
const server = repl.start({ input: new PassThrough(), output: nowhere, prompt: "", terminal: false, useGlobal: true, breakEvalOnSigint: true })
globalThis.display = (...values) => Promise.all(values.map((value) => show(value, false)))
process.removeAllListeners("uncaughtException")
// What is thrown goes to the REPL's domain, which would print it.
server._domain.removeAllListeners("error")
server._domain.on("error", (failure) => failing(failure))

/** The REPL has no static imports; what they mean it has. */
function withoutImports(code) {
  const from = (names, source) => {
    const [, usual, all, some] = /^(?:([\w$]+)\s*,?\s*)?(?:\*\s+as\s+([\w$]+))?\s*(\{[^}]*\})?$/.exec(names.trim()) ?? []
    const parts = []
    if (usual) parts.push("var { default: " + usual + " } = await import(" + source + ")")
    if (all) parts.push("var " + all + " = await import(" + source + ")")
    if (some) parts.push("var " + some.replace(/\s+as\s+/g, ": ") + " = await import(" + source + ")")
    return parts.join("; ")
  }
  return code
    .replace(/^[ \t]*import\s+([^"'()]+?)\s+from\s+(["'][^"']+["'])[ \t]*;?/gm, (_, names, source) => from(names, source) + ";")
    .replace(/^[ \t]*import\s+(["'][^"']+["'])[ \t]*;?/gm, "await import($1);")
}

function evaluate(code) {
  return new Promise((resolve, reject) => {
    failing = reject
    server.eval(withoutImports(code) + "\n", server.context, "cell", (failure, value) => {
      if (failure) reject(failure.err ?? failure)
      else resolve(value)
    })
  })
}

let failing = () => undefined
process.on("uncaughtException", (failure) => failing(failure))
process.on("unhandledRejection", (failure) => failing(failure))
process.on("SIGINT", () => failing(new Error("interrupted")))

async function run({ code, env }) {
  const before = { ...process.env }
  Object.assign(process.env, env)
  try {
    const value = await evaluate(code)
    if (value !== undefined) await show(value, true)
  } catch (failure) {
    const isError = failure !== null && typeof failure === "object" && "message" in failure
    const text = isError ? String(failure.message) : inspect(failure)
    say({ type: "error", name: isError ? (failure.name ?? "Error") : "Error", value: text, traceback: (isError && failure.stack) || text })
  } finally {
    for (const name of Object.keys(env)) before[name] === undefined ? delete process.env[name] : (process.env[name] = before[name])
  }
}

/** What was printed is out when the stream says so. */
const flushed = (stream) => new Promise((done) => stream.write("", () => done()))

async function main() {
  for await (const line of readline.createInterface({ input: fs.createReadStream(null, { fd: askFd }) })) {
    await run(JSON.parse(line))
    await flushed(process.stdout)
    await flushed(process.stderr)
    writeAll(1, mark)
    writeAll(2, mark)
    say({ type: "end" })
  }
  process.exit(0)
}

void main()
`
