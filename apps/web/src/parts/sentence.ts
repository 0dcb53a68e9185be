/** The words of a fault begin small, because they are put into other words; alone they are a sentence. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
