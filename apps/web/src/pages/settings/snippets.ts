/** What a program in each world needs to use a token, ready to be pasted. */
export interface Snippet {
  readonly name: string
  readonly said: string
  readonly code: string
  /** E2B's clients insist on how a key looks. */
  readonly form: "warren" | "e2b"
}

export function snippetsFor(url: string, token: string): readonly Snippet[] {
  return [
    { name: "SDK", form: "warren", said: "A program in TypeScript, with @warren/sdk.", code: sdk(url, token) },
    { name: "curl", form: "warren", said: "Anything that speaks HTTP.", code: curl(url, token) },
    {
      name: "MCP",
      form: "warren",
      said: "Claude Code; Cursor and others take the same address and header.",
      code: `claude mcp add --transport http warren ${url}/mcp --header "Authorization: Bearer ${token}"`,
    },
    { name: "E2B", form: "e2b", said: "Programs written for E2B, as they are.", code: e2b(url, token) },
  ]
}

function sdk(url: string, token: string): string {
  return `import { Warren } from "@warren/sdk/warren.ts"

const warren = new Warren({ url: "${url}", token: "${token}" })
await using session = await warren.sessions.create()
const { stdout } = await session.exec("echo hello")
console.log(stdout)`
}

function curl(url: string, token: string): string {
  return `curl ${url}/v1/sessions \\
  -H "Authorization: Bearer ${token}" \\
  -H "Content-Type: application/json" \\
  -d '{"name":"from-curl"}'`
}

function e2b(url: string, token: string): string {
  return `export E2B_API_KEY=${token}
export E2B_API_URL=${url}/e2b
export E2B_SANDBOX_URL=${url}`
}
