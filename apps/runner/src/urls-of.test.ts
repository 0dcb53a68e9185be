import { expect, test } from "vitest"
import { transcriptionOf } from "./transcription.ts"
import { urlsOf } from "./urls-of.ts"

test("places by host are read from one line, and what is none is named", () => {
  expect(urlsOf("")).toEqual({})
  expect(urlsOf(" github.com=https://git.example/a  Forge.example:8443=http://127.0.0.1:1/ ")).toEqual({
    "github.com": "https://git.example/a",
    "forge.example:8443": "http://127.0.0.1:1/",
  })
  for (const wrong of ["github.com", "=https://a", "a=b", "a=file:///etc"]) expect(() => urlsOf(wrong)).toThrow(wrong)
})

test("a program that writes speech down goes before an endpoint", () => {
  const none = { transcribeCommand: "", transcribeUrl: "", transcribeModel: "m" }
  const key = () => undefined
  expect(transcriptionOf(none, key)).toBeUndefined()
  expect(transcriptionOf({ ...none, transcribeUrl: "http://x" }, key)).toEqual({ url: "http://x", model: "m", key })
  expect(transcriptionOf({ ...none, transcribeUrl: "http://x", transcribeCommand: "node stt.mjs" }, key)).toEqual({
    command: ["node", "stt.mjs"],
  })
})
