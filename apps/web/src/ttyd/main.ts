import { FitAddon } from "@xterm/addon-fit"
import { Terminal } from "@xterm/xterm"
import { colours } from "../session/terminal/colours.ts"
import { TtyLine } from "./tty-line.ts"
import "@xterm/xterm/css/xterm.css"
import "./ttyd.css"

/** A terminal of a session as a page of its own, at the gateway: `/s/<session>/ttyd/`, `?arg=` its name. */
const scrollback = 10_000

const terminal = new Terminal({
  ...{ fontSize: 14, lineHeight: 1.2, scrollback, theme: colours(), minimumContrastRatio: 4.5 },
  fontFamily: "ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', monospace",
})
const fit = new FitAddon()
terminal.loadAddon(fit)
terminal.open(elementOf("terminal"))
fit.fit()
terminal.focus()
new ResizeObserver(() => fit.fit()).observe(elementOf("terminal"))
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (terminal.options.theme = colours()))

const said = elementOf("said")
const line = new TtyLine(terminal, (text) => {
  said.textContent = text ?? ""
  said.hidden = text === undefined
})
terminal.onKey(({ key }) => {
  if (key === "\r") line.again()
})

function elementOf(id: string): HTMLElement {
  const found = document.getElementById(id)
  if (!found) throw new Error(`the page has no ${id}`)
  return found
}
