declare const WARREN_BUILD: string | undefined

/** Which sources a bundle was made from; `dev` when they run as they are. */
export const build = typeof WARREN_BUILD === "string" ? WARREN_BUILD : "dev"
export const version = "0.1.0"
