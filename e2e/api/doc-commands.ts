/** One command of ours in a line for a shell. */
export interface DocCommand {
  readonly line: string
  readonly words: readonly string[]
}

const ends = new Set([";", "|", "&", "<", ">", ")", "\n"])

/** Every `warren …` in lines for a shell: what others would run is theirs. */
export function warrenCommandsIn(code: string): DocCommand[] {
  return code
    .split("\n")
    .flatMap((line) => commandsIn(line).flatMap((words) => (words?.length ? [{ line, words }] : [])))
}

function commandsIn(line: string): (readonly string[] | undefined)[] {
  return [...line.matchAll(/(?:^|[\s(;])(?:npx |sudo |-- )?warren(?= )/g)].map((match) => {
    const before = line.slice(0, match.index + 1)
    // In a comment, or an address as `warren.example`, it is only a word.
    if (/(^|\s)#/.test(before) || /mcp add /.test(before)) return undefined
    return wordsOf(line.slice(match.index + match[0].length))
  })
}

/** The words up to the end of a command, as a shell takes them apart; `$(…)` is one word. */
function wordsOf(text: string): string[] {
  const words: string[] = []
  let word: string | undefined
  for (let at = 0; at < text.length; at++) {
    const letter = text[at] ?? ""
    if (letter === "'" || letter === '"') {
      const close = text.indexOf(letter, at + 1)
      word = (word ?? "") + text.slice(at + 1, close)
      at = close
    } else if (text.startsWith("$(", at)) {
      word = (word ?? "") + "substituted"
      at = text.indexOf(")", at)
    } else if (letter === "#" && word === undefined) break
    else if (ends.has(letter)) break
    else if (letter === " ") {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? "") + letter
  }
  return word === undefined ? words : [...words, word]
}
