/* oxlint-disable typescript/no-unsafe-member-access -- a test reads whatever came */
import { expect } from "vitest"

/** What a call of a tool was answered with, from whichever client. */
export interface Told {
  readonly isError?: boolean | undefined
  readonly content: readonly { readonly type: string; readonly text?: string; readonly mimeType?: string }[]
  readonly structuredContent?: any // oxlint-disable-line typescript/no-explicit-any -- a test reads whatever came
}

/** What earlier calls told that later ones need. */
export interface Known {
  readonly session: string
  pid?: number
  shell?: string
  questionId?: string
}

interface Step {
  readonly tool: string
  args(known: Known): Record<string, unknown>
  check(told: Told, known: Known): void
}

export function textOf({ content }: Told): string {
  return content.map(({ text = "" }) => text).join("\n")
}

const script = (...steps: object[]): string => `[[script:${JSON.stringify({ steps })}]]`
const well = (told: Told): void => expect([told.isError ?? false, textOf(told)]).toEqual([false, expect.any(String)])
const says = (what: string | RegExp) => (told: Told) => {
  well(told)
  expect(textOf(told)).toMatch(what)
}

/** Every tool, in an order in which each finds what it needs. */
export const everyTool: readonly Step[] = [
  {
    tool: "create_session",
    args: ({ session }) => ({ name: session, network: { mode: "none" } }),
    check: (told, { session }) => {
      well(told)
      expect(told.structuredContent.session).toMatchObject({ name: session, state: "running" })
    },
  },
  { tool: "list_sessions", args: () => ({}), check: (told, { session }) => says(session)(told) },
  {
    tool: "get_session",
    args: ({ session }) => ({ session }),
    check: (told) => expect(told.structuredContent.session.limits.memoryBytes).toBeGreaterThan(0),
  },
  {
    tool: "run_command",
    args: ({ session }) => ({ session, command: "echo hello; echo oops >&2; exit 3" }),
    check: (told, known) => {
      well(told)
      expect(told.structuredContent).toMatchObject({ exitCode: 3, isRunning: false, output: "hello\noops\n" })
      expect(textOf(told)).toContain("exit code 3")
      known.pid = told.structuredContent.pid as number
    },
  },
  {
    tool: "read_output",
    args: ({ session, pid }) => ({ session, pid, after: 6 }),
    check: (told) => expect(told.structuredContent).toMatchObject({ output: "oops\n", next: 11, isRunning: false }),
  },
  {
    tool: "run_code",
    args: ({ session }) => ({ session, language: "python", code: "print(6 * 7)" }),
    check: (told) => expect(told.structuredContent).toMatchObject({ exitCode: 0, output: "42\n" }),
  },
  {
    tool: "run_command",
    args: ({ session }) => ({ session, command: "cat; exec sleep 1000", stdin: "first ", waitMs: 0 }),
    check: (told, known) => {
      expect(told.structuredContent).toMatchObject({ isRunning: true })
      known.pid = told.structuredContent.pid as number
    },
  },
  { tool: "list_processes", args: ({ session }) => ({ session }), check: says("sleep 1000") },
  {
    tool: "kill_process",
    args: ({ session, pid }) => ({ session, pid, signal: "SIGKILL" }),
    check: (told) => expect(told.structuredContent).toEqual({ wasRunning: true }),
  },
  {
    tool: "write_input",
    args: ({ session, pid }) => ({ session, pid, text: "too late", isLast: true }),
    // What it is told is the program's end, not that there is no such tool.
    check: (told) => expect(textOf(told)).not.toContain("internal"),
  },
  {
    tool: "open_shell",
    args: ({ session }) => ({ session }),
    check: (told, known) => {
      well(told)
      known.shell = told.structuredContent.shell as string
    },
  },
  {
    tool: "run_in_shell",
    args: ({ session, shell }) => ({ session, shell, command: "cd /tmp; WHO=me; pwd" }),
    check: (told) => expect(told.structuredContent).toMatchObject({ exitCode: 0, cwd: "/tmp", output: "/tmp\n" }),
  },
  {
    tool: "list_shells",
    args: ({ session }) => ({ session }),
    check: (told, { shell }) => expect(told.structuredContent.shells).toMatchObject([{ shell }]),
  },
  { tool: "close_shell", args: ({ session, shell }) => ({ session, shell }), check: well },
  {
    tool: "write_file",
    args: ({ session }) => ({ session, path: "notes/a.txt", content: "one\ntwo\nthree\n" }),
    check: (told) => expect(told.structuredContent).toEqual({ path: "/workspace/notes/a.txt", bytes: 14 }),
  },
  {
    tool: "edit_file",
    args: ({ session }) => ({ session, path: "notes/a.txt", edits: [{ old: "two", new: "2" }] }),
    check: (told) => expect(told.structuredContent).toMatchObject({ replaced: 1 }),
  },
  {
    tool: "read_file",
    args: ({ session }) => ({ session, path: "notes/a.txt", limit: 6 }),
    check: (told) => expect(told.structuredContent).toMatchObject({ content: "one\n2\n", size: 12, nextOffset: 6 }),
  },
  { tool: "list_files", args: ({ session }) => ({ session, depth: 2 }), check: says("/workspace/notes/a.txt") },
  {
    tool: "search_files",
    args: ({ session }) => ({ session, pattern: "^t", glob: "*.txt" }),
    check: (told) =>
      expect(told.structuredContent).toEqual({ found: [{ path: "notes/a.txt", line: 3, text: "three" }], all: 1 }),
  },
  { tool: "remove_file", args: ({ session }) => ({ session, path: "notes", recursive: true }), check: well },
  {
    tool: "expose_port",
    args: ({ session }) => ({ session, port: 3000 }),
    check: (told) =>
      expect(told.structuredContent.tunnel.url).toMatch(/^http:\/\/\S+:\d+\/s\/ses_\w+\/t\/port-3000\/$/),
  },
  {
    tool: "list_ports",
    args: ({ session }) => ({ session }),
    check: (told) => expect(told.structuredContent.tunnels).toMatchObject([{ name: "port-3000", port: 3000 }]),
  },
  { tool: "close_port", args: ({ session }) => ({ session, name: "port-3000" }), check: well },
  {
    tool: "take_screenshot",
    args: ({ session }) => ({ session, url: "data:text/html,<h1>hello" }),
    // Whether there is a browser is the image's business; what there is not is said.
    check: (told) =>
      told.isError ? expect(textOf(told)).toMatch(/browser/i) : expect(told.content).toMatchObject([{ type: "image" }]),
  },
  {
    tool: "start_agent",
    args: ({ session }) => ({ session, spec: { adapter: "scripted" } }),
    check: (told) => expect(told.structuredContent.agent).toMatchObject({ adapter: "scripted", status: "idle" }),
  },
  { tool: "get_agent", args: ({ session }) => ({ session }), check: says("idle") },
  {
    tool: "prompt_agent",
    args: ({ session }) => ({ session, text: script({ text: "I am here" }, { question: "May I?", options: ["yes"] }) }),
    check: (told, known) => {
      well(told)
      expect(told.structuredContent).toMatchObject({ isDone: false, question: { text: "May I?", options: ["yes"] } })
      known.questionId = told.structuredContent.question.id as string
    },
  },
  { tool: "answer_agent", args: ({ session, questionId }) => ({ session, questionId, answer: "yes" }), check: well },
  {
    tool: "prompt_agent",
    args: ({ session }) => ({ session, text: script({ text: "the whole answer", pieces: 4 }) }),
    check: (told) =>
      expect(told.structuredContent).toMatchObject({ isDone: true, reason: "end_turn", answer: "the whole answer" }),
  },
  {
    tool: "read_feed",
    args: ({ session }) => ({ session, after: 0 }),
    check: (told) => {
      well(told)
      expect(told.structuredContent).toMatchObject({ hasMore: false })
      expect(textOf(told)).toMatch(/May I\?.*the whole answer/s)
    },
  },
  { tool: "abort_agent", args: ({ session }) => ({ session }), check: well },
  { tool: "stop_agent", args: ({ session }) => ({ session }), check: well },
  {
    tool: "fork_session",
    args: ({ session }) => ({ session, name: `${session}-fork` }),
    check: (told, { session }) => expect(told.structuredContent.sessions).toMatchObject([{ name: `${session}-fork` }]),
  },
  { tool: "delete_session", args: ({ session }) => ({ session: `${session}-fork` }), check: well },
  {
    tool: "hibernate_session",
    args: ({ session }) => ({ session }),
    check: (told) => expect(told.structuredContent.session.state).toBe("hibernated"),
  },
  {
    tool: "restore_session",
    args: ({ session }) => ({ session }),
    check: (told) => expect(told.structuredContent.session.state).toBe("running"),
  },
  { tool: "delete_session", args: ({ session }) => ({ session }), check: well },
]
