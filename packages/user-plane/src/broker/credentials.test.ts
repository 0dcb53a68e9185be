import { expect, test } from "vitest"
import { keyHeader } from "./credentials.ts"
import { errandOf } from "./errand.ts"

const [anthropic, openai] = ["/anthropic/v1/messages", "/openai/v1/chat"].map((path) => errandOf("POST", path))
const git = errandOf("GET", "/git/github.com/acme/widgets.git/info/refs?service=git-upload-pack")
const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString("base64")}`

test.each([
  ["Anthropic takes a key in a header of its own", anthropic, {}, ["x-api-key", "k"]],
  ["Anthropic takes a subscription's token as a bearer", anthropic, { kind: "bearer" }, ["Authorization", "Bearer k"]],
  ["OpenAI takes a bearer", openai, {}, ["Authorization", "Bearer k"]],
  ["OpenAI takes a bearer, whatever the key is called", openai, { kind: "api-key" }, ["Authorization", "Bearer k"]],
  ["git takes a password", git, {}, ["Authorization", basic("x-access-token:k")]],
  ["git takes a name and a password", git, { username: "anna" }, ["Authorization", basic("anna:k")]],
] as const)("%s", (_, errand, more, header) => {
  expect(errand && keyHeader(errand, { value: "k", ...more })).toEqual(header)
})
