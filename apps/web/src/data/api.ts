import { Http } from "@warren/sdk/http.ts"

/** The browser's cookie says who asks. */
const here = {
  url: location.origin,
  token: undefined,
  fetch: (...request: Parameters<typeof fetch>) => fetch(...request),
}

/** Requests to the Warren this page came from. */
export const http = new Http(here)

/** For what is asked again and again anyway: that it fails is known, and said, at once. */
export const httpOnce = new Http({ ...here, triesMax: 1 })
