import { existsSync } from "node:fs"
import { readdir } from "node:fs/promises"
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import type { Setting, Settings } from "@warren/base/settings.ts"
import { code, page, table } from "./markdown.ts"

/** The settings of every app that has some. */
export async function settingsPage(): Promise<string> {
  const apps = (await readdir("apps")).toSorted()
  const sections = await Promise.all(apps.map(sectionOf))
  return page("Settings", "apps/*/src/settings.ts", [
    "Settings are environment variables. One that is unset or empty has its default; one that makes no sense stops the start.",
    ...sections,
  ])
}

async function sectionOf(app: string): Promise<string> {
  const file = resolve("apps", app, "src", "settings.ts")
  if (!existsSync(file)) return ""
  const { settings } = (await import(pathToFileURL(file).href)) as { settings: Settings }
  const rows = Object.values(settings).map((setting) => [code(setting.variable), fallbackOf(setting), setting.doc])
  return `## ${app}\n\n${table(["variable", "default", "what it is for"], rows)}`
}

function fallbackOf({ fallback }: Setting<unknown>): string {
  if (fallback === undefined) return "must be set"
  return code(typeof fallback === "string" ? portable(fallback) : JSON.stringify(fallback))
}

/** The same on every machine: whose home it is must not show. */
function portable(path: string): string {
  const data = process.env["XDG_DATA_HOME"] || join(homedir(), ".local", "share")
  if (path.startsWith(`${data}/`)) return `~/.local/share${path.slice(data.length)}`
  return path.startsWith(`${homedir()}/`) ? `~${path.slice(homedir().length)}` : path
}
