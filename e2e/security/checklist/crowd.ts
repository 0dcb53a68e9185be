import { once } from "node:events"
import { request, type ClientRequest, type IncomingMessage } from "node:http"
import { text as textOf } from "node:stream/consumers"
import { expect } from "vitest"
import { peaks } from "./flood.ts"
import { mebibyte, type Subject } from "./subject.ts"

/** What is told to those for whom it cannot be done now: that they may ask again. */
const putOff = "429 limit"
/** Connections are kept for the next request, also those to a runner and to PID 1. */
const keptMax = 100
const connectingMax = 500
/** So that those who come later find those there who came before. */
const workS = 2

interface Ask {
  readonly path: string
  readonly method: string
  readonly body?: string
}

/** A request of each kind. */
function asks(subject: Subject): readonly [Ask, ...Ask[]] {
  const exec = { path: `/v1/sessions/${subject.session}/exec`, method: "POST" }
  return [
    { ...exec, body: `{"cmd":"sleep ${workS}"}` },
    { path: subject.inSession("/etc/hostname"), method: "GET" },
    { ...exec, body: '{"cmd":"tty","pty":{"cols":80,"rows":24}}' },
    { path: subject.inSession("/tmp/crowded"), method: "PUT", body: "x" },
  ]
}

/** Everybody at once: each is answered, or told to come again; then all is as it was. How many of each answer there were. */
export async function crowd(subject: Subject, size: number): Promise<Readonly<Record<string, number>>> {
  await subject.healthy()
  const before = subject.descriptors()
  const { done, runner, control } = await peaks(subject, () => toldAll(subject, size))
  const counts: Record<string, number> = { "200": 0 }
  for (const one of done) counts[one] = (counts[one] ?? 0) + 1
  const { 200: served = 0, [putOff]: limited = 0, ...others } = counts
  expect(others).toEqual({})
  expect(served).toBeGreaterThan(Math.min(size, 300) / 3)
  await subject.healthy()
  await expect.poll(() => subject.descriptors(), { timeout: 60_000 }).toBeLessThan(before + keptMax)
  expect(await subject.run("ls /proc | grep -c '^[0-9]'")).toMatch(/^[1-9]\n$/)
  return { served, limited, runnerMb: mb(runner), controlMb: mb(control) }
}

/** What each is told. A connection of its own each, as many at a time as a kernel lets wait; nobody waits for another's answer. */
async function toldAll(subject: Subject, size: number): Promise<string[]> {
  const { url, token } = subject.system
  const kinds = asks(subject)
  const answers: Promise<string>[] = []
  while (answers.length < size) {
    const { path, method, body } = kinds[answers.length % kinds.length] ?? kinds[0]
    const headers = { authorization: `Bearer ${token}` }
    const asked = request(url + path, { method, headers, agent: false }).end(body)
    answers.push(toldTo(asked))
    // Asked last, answered last: then all of these have been let in.
    if (answers.length % connectingMax === 0) await subject.statusOf("/v1/health")
  }
  return Promise.all(answers)
}

async function toldTo(asked: ClientRequest): Promise<string> {
  try {
    const [answer] = (await once(asked, "response")) as [IncomingMessage]
    const text = await textOf(answer)
    return answer.statusCode === 200 ? "200" : `${answer.statusCode} ${codeOf(text)}`
  } catch (failure) {
    return String(failure)
  }
}

function codeOf(text: string): string {
  try {
    return (JSON.parse(text) as { error: { code: string } }).error.code
  } catch {
    return `says ${JSON.stringify(text)}`
  }
}

export const mb = (bytes: number): number => Math.round(bytes / mebibyte)
