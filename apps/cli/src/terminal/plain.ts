/* eslint-disable no-control-regex -- It is about control characters. */

/** What somebody else wrote, in one line that does not steer the terminal. Our own colours stay. */
export function plain(text: string): string {
  return text.replaceAll(/\u001b(?!\[\d*m)/g, "␛").replaceAll(/[\u0000-\u001a\u001c-\u001f\u007f-\u009f]/g, " ")
}

export function withoutColours(text: string): string {
  return text.replaceAll(/\u001b\[\d*m/g, "")
}
