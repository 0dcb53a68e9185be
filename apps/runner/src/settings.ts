import { homeSetting } from "@warren/protocol/places.ts"

export const settings = { home: homeSetting }
