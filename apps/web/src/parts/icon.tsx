import type { ReactElement } from "react"

/** Drawn on 16 by 16, in the colour of the text. */
const paths = {
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5 14 14",
  terminal: "M2.5 3h11v10h-11zM5 6l2 2-2 2M8.5 10.5H11",
  folder: "M2 4h4l1.5 2H14v7H2z",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  diff: "M8 2v6M5 5h6M5 12h6",
  globe: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM2 8h12M8 2c2 2 2 10 0 12M8 2c-2 2-2 10 0 12",
  code: "M5.5 4.5 2 8l3.5 3.5M10.5 4.5 14 8l-3.5 3.5",
  screen: "M2 3h12v8H2zM6 14h4M8 11v3",
  info: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.5V11M8 5h.01",
  chat: "M2.5 3h11v8H8l-3 2.5V11H2.5z",
  image: "M2 4.5 8 2l6 2.5-6 2.5zM2 8l6 2.5L14 8M2 11.5 8 14l6-2.5",
  box: "M8 2l5.5 3v6L8 14l-5.5-3V5zM2.5 5 8 8l5.5-3M8 8v6",
  key: "M5.5 12a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 7.5 13.5 2M11 4.5 13 6.5",
  brain: "M4 2.5h8v11L8 11l-4 2.5z",
  people:
    "M6 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM2 13c0-3 1.5-4.5 4-4.5s4 1.5 4 4.5M10.5 7a2 2 0 1 0 0-4M11.5 8.7c1.6.4 2.5 1.8 2.5 4.3",
  gear: "M8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6 5 5M11 11l1.4 1.4M12.4 3.6 11 5M5 11l-1.4 1.4",
  fork: "M4 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM12 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM8 13.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM4 5.5c0 3 4 2 4 5M12 5.5c0 3-4 2-4 5",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.5V3M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3l8 5-8 5z",
  stop: "M4 4h8v8H4z",
  trash: "M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5 5 13h6l.5-8.5",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  check: "M3 8.5 6.5 12 13 4.5",
  chevron: "M6 3.5 10.5 8 6 12.5",
  down: "M8 3v10M4 9l4 4 4-4",
  up: "M8 13V3M4 7l4-4 4 4",
  expand: "M9.5 2.5h4v4M6.5 13.5h-4v-4M13.5 2.5 9 7M2.5 13.5 7 9",
  pane: "M2 3h12v10H2zM9.5 3v10",
  refresh: "M13 8a5 5 0 1 1-1.5-3.5M13 2v3h-3",
  link: "M6.5 9.5 9.5 6.5M7 4.5 8.5 3a3.2 3.2 0 0 1 4.5 4.5L11.5 9M9 11.5 7.5 13A3.2 3.2 0 0 1 3 8.5L4.5 7",
  upload: "M8 11V3M4.5 6 8 2.5 11.5 6M2.5 13.5h11",
  download: "M8 2.5v8M4.5 7.5 8 11l3.5-3.5M2.5 13.5h11",
  edit: "M3 13l.5-3L11 2.5 13.5 5 6 12.5z",
  camera: "M2 5h3l1-2h4l1 2h3v8H2zM8 11a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  out: "M6 2.5H2.5v11H6M10.5 4.5 14 8l-3.5 3.5M14 8H6",
  warning: "M8 2 14.5 13.5h-13zM8 6.5v3.5M8 12h.01",
} as const

export type IconName = keyof typeof paths

/** Only for the eye: whatever it stands on has a name of its own. */
export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }): ReactElement {
  return (
    <svg
      aria-hidden="true"
      className="icon"
      fill="none"
      height={size}
      stroke="currentColor"
      strokeLinecap="round"
      strokeLinejoin="round"
      strokeWidth={name === "more" ? 2.4 : 1.4}
      viewBox="0 0 16 16"
      width={size}
    >
      <path d={paths[name]} />
    </svg>
  )
}
