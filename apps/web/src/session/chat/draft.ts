import { useEffect, useState, type Dispatch, type SetStateAction } from "react"

/** What was written and not sent: there again after the page was closed, lost nowhere. */
export function useDraft(session: string): [string, Dispatch<SetStateAction<string>>] {
  const key = `warren.${session}.draft`
  const [draft, setDraft] = useState(() => localStorage.getItem(key) ?? "")
  useEffect(() => {
    if (draft === "") localStorage.removeItem(key)
    else localStorage.setItem(key, draft)
  }, [key, draft])
  return [draft, setDraft]
}
