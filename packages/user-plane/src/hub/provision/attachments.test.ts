import { readFile, readdir, writeFile } from "node:fs/promises"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect, test } from "vitest"
import { Loopback } from "../../egress/testing/egress-system.ts"
import { HostPlaces } from "../testing/host-places.ts"
import { Attachments, type Asked } from "./attachments.ts"
import type { Transcription } from "./transcription.ts"

const { signal } = new AbortController()
const data = Buffer.from("RIFFbytes").toString("base64")
const speech: Asked = { type: "file", filename: "note 1.wav", mime: "audio/wav", data }
const image: Asked = { type: "file", filename: "p.png", mime: "image/png", data }

async function prepare(folder: TempFolder, asked: Asked[], transcription?: Transcription) {
  await using places = new HostPlaces("none", folder.at())
  return await new Attachments({ places, transcription, scratch: folder.path }).prepare("s", "msg_1", asked, signal)
}

test("what comes along becomes files that their addresses lead to", async () => {
  await using folder = await TempFolder.make()
  const { attachments, heard } = await prepare(folder, [image, speech])
  expect(heard).toEqual([])
  const [first, second] = attachments
  expect(await readFile(new URL(first?.url ?? ""), "utf8")).toBe("RIFFbytes")
  expect(await readFile(new URL(second?.url ?? ""), "utf8")).toBe("RIFFbytes")
  expect(second).toMatchObject({ mime: "audio/wav", filename: "note 1.wav" })
  await expect(prepare(folder, [{ type: "file", mime: "text/plain", url: "file:///nowhere/x" }])).rejects.toMatchObject(
    {
      ...{ code: "not_found", message: expect.stringMatching(/^attachment x: /) },
    },
  )
})

test("speech is written down by a program, which is given a file and leaves none", async () => {
  await using folder = await TempFolder.make()
  await writeFile(folder.at("listen"), '#!/bin/sh\nprintf "%s says: " "$1"\nhead -c 4 "$2"\n', { mode: 0o755 })
  const { heard } = await prepare(folder, [image, speech], { command: [folder.at("listen"), "it"] })
  expect(heard).toEqual(["[note 1.wav, written down]\nit says: RIFF"])
  expect((await readdir(folder.path)).filter((name) => name.startsWith("speech-"))).toEqual([])
  const failing = prepare(folder, [speech], { command: ["false"] })
  await expect(failing).rejects.toMatchObject({ code: "unavailable", subject: "step:attachments" })
  await expect(prepare(folder, [speech], { command: ["/nowhere"] })).rejects.toMatchObject({ code: "unavailable" })
})

test("speech is written down by an endpoint, and what that says instead is told", async () => {
  await using folder = await TempFolder.make()
  let answer = { status: 200, body: JSON.stringify({ text: " Fix the login. " }) }
  const asked: string[] = []
  await using server = await Loopback.http((request, response) => {
    const pieces: Buffer[] = []
    request.on("data", (piece: Buffer) => pieces.push(piece))
    request.on("end", () => {
      asked.push(`${request.headers.authorization} ${Buffer.concat(pieces).toString()}`)
      response.writeHead(answer.status).end(answer.body)
    })
  })
  const how = { url: `http://127.0.0.1:${server.port}/v1/audio/transcriptions`, model: "m", key: () => "k" }
  expect((await prepare(folder, [speech], how)).heard).toEqual(["[note 1.wav, written down]\nFix the login."])
  expect(asked[0]).toMatch(/^Bearer k [^]*name="model"\r\n\r\nm\r\n[^]*RIFFbytes/)
  for (const wrong of [
    { status: 500, body: "" },
    { status: 200, body: "{}" },
    { status: 200, body: "no" },
  ]) {
    answer = wrong
    await expect(prepare(folder, [speech], how)).rejects.toMatchObject({ code: "unavailable" })
  }
})
