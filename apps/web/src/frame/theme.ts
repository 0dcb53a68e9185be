import { Store } from "../data/store.ts"

export type Theme = "system" | "light" | "dark"

const key = "warren.theme"

export const theme = new Store<Theme>("system")

/** What was chosen here before; otherwise what the system says. */
export function applySavedTheme(): void {
  const saved = localStorage.getItem(key)
  if (saved === "light" || saved === "dark") setTheme(saved)
}

export function setTheme(chosen: Theme): void {
  theme.set(chosen)
  if (chosen === "system") delete document.documentElement.dataset["theme"]
  else document.documentElement.dataset["theme"] = chosen
  localStorage.setItem(key, chosen)
}
