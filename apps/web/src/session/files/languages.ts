import { css } from "@codemirror/lang-css"
import { html } from "@codemirror/lang-html"
import { javascript } from "@codemirror/lang-javascript"
import { json } from "@codemirror/lang-json"
import { markdown } from "@codemirror/lang-markdown"
import { python } from "@codemirror/lang-python"
import type { Extension } from "@codemirror/state"

const typescript = (): Extension => javascript({ typescript: true })
const typescriptX = (): Extension => javascript({ typescript: true, jsx: true })
const javascriptX = (): Extension => javascript({ jsx: true })

const byEnding: Readonly<Record<string, () => Extension>> = {
  ...{ ts: typescript, mts: typescript, cts: typescript, tsx: typescriptX },
  ...{ js: javascriptX, mjs: javascriptX, cjs: javascriptX, jsx: javascriptX },
  ...{ json, css, html, htm: html, svg: html, xml: html, vue: html, md: markdown, markdown, py: python, pyi: python },
}

/** How a file is coloured, by how its name ends; plain where that says nothing. */
export function languageFor(path: string): Extension {
  return byEnding[path.split(".").at(-1)?.toLowerCase() ?? ""]?.() ?? []
}
