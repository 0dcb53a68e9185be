import { isOurCookieName } from "./credentials.ts"

/** What of a program's cookie reaches the browser: for this preview's host and paths alone, and never under our name. */
export function narrowedCookie(value: string, prefix: string): string | undefined {
  const [pair = "", ...attributes] = value.split(";").map((part) => part.trim())
  const name = pair.split("=", 1)[0] ?? ""
  if (!pair.includes("=") || isOurCookieName(name)) return undefined
  const named = attributes.map(
    (attribute) => [attribute.split("=", 1)[0]?.trim().toLowerCase() ?? "", attribute] as const,
  )
  const kept = named.filter(([key]) => key !== "domain" && key !== "path").map(([, attribute]) => attribute)
  const path =
    named
      .findLast(([key]) => key === "path")?.[1]
      .split("=")[1]
      ?.trim() ?? ""
  // Without one a browser takes the folder of the request's path, which is the preview's own. So for one it cannot read.
  return [pair, ...kept, ...(path.startsWith("/") ? [`Path=${pathBelow(prefix, path)}`] : [])].join("; ")
}

function pathBelow(prefix: string, path: string): string {
  return path === prefix || path.startsWith(`${prefix}/`) ? path : `${prefix}${path}`
}
