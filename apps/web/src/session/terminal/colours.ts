import type { ITheme } from "@xterm/xterm"

/** Readable on the ground of the page, in both its lights. */
const sixteen: Readonly<Record<"light" | "dark", ITheme>> = {
  dark: {
    background: "#101113",
    foreground: "#e6e7e9",
    cursor: "#8b9ff5",
    cursorAccent: "#101113",
    selectionBackground: "#33437f",
    black: "#33363b",
    red: "#f08a80",
    green: "#5cc48a",
    yellow: "#e3ac4f",
    blue: "#8b9ff5",
    magenta: "#d29af0",
    cyan: "#5cc2cf",
    white: "#c9cbd0",
    brightBlack: "#7d828b",
    brightRed: "#ffaaa1",
    brightGreen: "#86dfab",
    brightYellow: "#f5cb81",
    brightBlue: "#b0befa",
    brightMagenta: "#e4bdf8",
    brightCyan: "#8fdde6",
    brightWhite: "#ffffff",
  },
  light: {
    background: "#ffffff",
    foreground: "#1a1b1e",
    cursor: "#3f58cf",
    cursorAccent: "#ffffff",
    selectionBackground: "#cdd5fb",
    black: "#1a1b1e",
    red: "#b3261e",
    green: "#1a7346",
    yellow: "#8a5700",
    blue: "#3f58cf",
    magenta: "#8a35b0",
    cyan: "#0b6f7d",
    white: "#5b5f66",
    brightBlack: "#6a6e76",
    brightRed: "#c93a31",
    brightGreen: "#238a56",
    brightYellow: "#a46a05",
    brightBlue: "#5870e0",
    brightMagenta: "#a04fc6",
    brightCyan: "#148595",
    brightWhite: "#33363b",
  },
}

export function colours(): ITheme {
  const chosen = document.documentElement.dataset["theme"]
  const isDark = chosen === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : chosen === "dark"
  return sixteen[isDark ? "dark" : "light"]
}
