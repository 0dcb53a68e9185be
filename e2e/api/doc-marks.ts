/** A command of the docs that a test cannot run as it is written. */
interface Mark {
  /** What is to be found in a line. */
  readonly command: RegExp
  /** What is run in its place; `:` is nothing. `$&` is the command itself. */
  readonly instead: string
  readonly because: string
}

const nothing = ":"

/** Every exception there is. What is not here is run to the letter, and has to end well. */
export const marks: readonly Mark[] = [
  { command: /^git clone … warren && cd warren$/m, instead: nothing, because: "this checkout is that clone" },
  { command: /^npm test\b/m, instead: nothing, because: "it is what runs this" },
  {
    command: /^npm start\b/m,
    instead: "warren status",
    because: "it stays in the foreground: one is running already, and e2e/start.test.ts runs it to the letter",
  },
  {
    command: /\blocalhost:7777|127\.0\.0\.1:7777/,
    instead: "127.0.0.1:$WARREN_PORT",
    because: "tests run side by side",
  },
  { command: /curl -N /, instead: "until-told $&", because: "a feed goes on until Ctrl-C" },
  { command: /warren stats(?= )/, instead: "until-told $&", because: "it goes on until Ctrl-C" },
  { command: /warren logs -f/, instead: "until-told $&", because: "it goes on until Ctrl-C" },
  {
    command: /warren forward dev 3000/,
    instead: "until-told warren forward dev 3000:0",
    because: "it goes on until Ctrl-C, and others may have port 3000",
  },
  { command: /--image debian:12/, instead: "--image host", because: "there is no registry to be reached here" },
  {
    command: /^warren (agent start --repo|attach|agent prompt|agent status|git files).*fix-login.*$/m,
    instead: nothing,
    because: "needs GitHub and Anthropic; e2e/agents does all of it with stand-ins",
  },
  {
    command: /^warren run --secret GITHUB_TOKEN -- gh pr list$/m,
    instead: "warren run --secret GITHUB_TOKEN -- true",
    because: "needs GitHub",
  },
  {
    command: /^sudo warren launcher$/m,
    instead: nothing,
    because: "it is running already, as it has to for what follows: e2e/users/machine.ts has started it",
  },
  { command: /\balice\b/, instead: "$ALICE", because: "accounts of one machine have to differ between tests" },
]

/** A block as it is run, and which marks that took. */
export function runnable(code: string): { readonly code: string; readonly used: readonly Mark[] } {
  const used = marks.filter(({ command }) => command.test(code))
  const changed = used.reduce(
    (text, { command, instead }) => text.replaceAll(new RegExp(command, `g${command.flags}`), instead),
    code,
  )
  return { code: changed, used }
}
