import { Http } from "@warren/sdk/http.ts"

/** Requests to the Warren this page came from. The browser's cookie says who asks. */
export const http = new Http({
  url: location.origin,
  token: undefined,
  fetch: (...request) => fetch(...request),
})
