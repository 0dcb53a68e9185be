import DOMPurify from "dompurify"
import { marked } from "marked"
import { memo, useMemo, type ReactElement } from "react"

/** Longer texts are shown as they are: to be read they would have to be cut anyway. */
const parsedCharsMax = 200_000

const allowed = {
  ALLOWED_TAGS:
    "p br hr strong em del code pre blockquote ul ol li h1 h2 h3 h4 h5 h6 a table thead tbody tr th td input".split(
      " ",
    ),
  ALLOWED_ATTR: ["href", "title", "align", "type", "checked", "disabled", "start"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#|\/)/i,
}

// A purifier of our own, so that its hooks are nobody else's.
const purifier = DOMPurify(window)
purifier.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank")
    node.setAttribute("rel", "noopener noreferrer")
  }
  if (node.tagName === "INPUT" && node.getAttribute("type") !== "checkbox") node.remove()
})

/** Text that an agent wrote. Nothing in it can run, load or dress itself up; pictures are left out, because loading one tells. */
export const Markdown = memo(function Markdown({ text }: { readonly text: string }): ReactElement {
  const html = useMemo(() => {
    if (text.length > parsedCharsMax) return undefined
    return purifier.sanitize(marked.parse(text, { async: false, gfm: true, breaks: false }), allowed)
  }, [text])
  if (html === undefined) return <pre className="markdown">{text}</pre>
  // oxlint-disable-next-line react/no-danger -- purified above
  return <div className="markdown" dangerouslySetInnerHTML={{ __html: html }} />
})
