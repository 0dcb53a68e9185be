import { Fault } from "@warren/base/fault.ts"

/** `host=url host=url`, as settings have it. */
export function urlsOf(text: string): Record<string, string> {
  const words = text.split(/\s+/).filter((word) => word !== "")
  return Object.fromEntries(
    words.map((word) => {
      const at = word.indexOf("=")
      const [host, url] = [word.slice(0, at).toLowerCase(), word.slice(at + 1)]
      if (at < 1 || !/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ""))
        throw new Fault("invalid", `"${word}" is not host=url`)
      return [host, url]
    }),
  )
}
