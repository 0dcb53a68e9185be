import { count } from "@warren/base/settings.ts"
import { homeSetting } from "@warren/protocol/places.ts"

export const settings = {
  home: homeSetting,
  port: count("WARREN_PORT", 7777, "The loopback port of the API and the page.", { min: 1, max: 65_535 }),
}
