import { useId, useMemo, useState, type ReactElement } from "react"
import { useLocation } from "wouter"
import { useAccount } from "../data/account.ts"
import { useSessions } from "../data/sessions.ts"
import { Dialog } from "../parts/dialog.tsx"
import { Icon, type IconName } from "../parts/icon.tsx"
import { StateDot } from "../parts/state-dot.tsx"
import { places } from "../places.ts"
import { setTheme } from "./theme.ts"

interface Found {
  readonly key: string
  readonly name: string
  readonly kind: string
  readonly icon: ReactElement
  act(): void
}

const shownMax = 12

/** Finds any session, page or action by a part of its name. */
export function Palette({ close }: { close(): void }): ReactElement {
  const [words, setWords] = useState("")
  const [at, setAt] = useState(0)
  const all = useEverything()
  const id = useId()
  const found = useMemo(() => all.filter(({ name }) => isLike(name, words)).slice(0, shownMax), [all, words])
  const chosen = found[Math.min(at, found.length - 1)]
  const act = (one: Found | undefined): void => {
    close()
    one?.act()
  }
  const steer = (event: React.KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by !== undefined) {
      event.preventDefault()
      setAt((Math.min(at, found.length - 1) + by + found.length) % Math.max(1, found.length))
    }
    if (event.key === "Enter") act(chosen)
  }
  return (
    <Dialog className="palette" close={close} title="Find">
      <input
        aria-activedescendant={chosen ? `${id}-${chosen.key}` : undefined}
        aria-autocomplete="list"
        aria-controls={id}
        aria-expanded="true"
        aria-label="Find a session, a page or an action"
        autoFocus
        className="input"
        onChange={({ target }) => {
          setWords(target.value)
          setAt(0)
        }}
        onKeyDown={steer}
        placeholder="Find a session, a page or an action"
        role="combobox"
        value={words}
      />
      <ul aria-label="Found" id={id} role="listbox">
        {found.map((one) => (
          <li
            aria-selected={one === chosen}
            id={`${id}-${one.key}`}
            key={one.key}
            onClick={() => act(one)}
            onKeyDown={steer}
            role="option"
          >
            {one.icon}
            <span className="cut">{one.name}</span>
            <span className="soft">{one.kind}</span>
          </li>
        ))}
        {found.length === 0 && (
          <li aria-selected="false" className="soft" role="option">
            Nothing is called that.
          </li>
        )}
      </ul>
    </Dialog>
  )
}

function useEverything(): readonly Found[] {
  const sessions = useSessions()
  const account = useAccount()
  const [, go] = useLocation()
  return useMemo(() => {
    const icon = (name: IconName): ReactElement => <Icon name={name} />
    const isAdmin = account?.user.role === "admin"
    return [
      ...(sessions ?? []).map((session) => ({
        key: session.id,
        name: session.name,
        kind: "session",
        icon: <StateDot session={session} />,
        act: () => go(`/s/${session.name}`),
      })),
      { key: "new", name: "New session", kind: "action", icon: icon("plus"), act: () => go("/new") },
      ...places
        .filter((place) => place.icon && (isAdmin || !place.isForAdmins))
        .map(({ path, title, icon: name = "file" }) => ({
          key: path,
          name: title,
          kind: "page",
          icon: icon(name),
          act: () => go(path),
        })),
      { key: "dark", name: "Dark", kind: "theme", icon: icon("moon"), act: () => setTheme("dark") },
      { key: "light", name: "Light", kind: "theme", icon: icon("sun"), act: () => setTheme("light") },
      {
        key: "system",
        name: "Light or dark as the system",
        kind: "theme",
        icon: icon("screen"),
        act: () => setTheme("system"),
      },
    ]
  }, [sessions, account, go])
}

/** Every letter of what was typed, in order: `flb` finds `fix-login-bug`. */
function isLike(name: string, words: string): boolean {
  let at = 0
  for (const letter of words.toLowerCase().replaceAll(/\s/g, "")) {
    at = name.toLowerCase().indexOf(letter, at) + 1
    if (at === 0) return false
  }
  return true
}
