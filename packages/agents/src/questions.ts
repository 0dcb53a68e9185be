import { Fault } from "@warren/base/fault.ts"

/** What an agent waits for an answer to. */
export class Questions {
  readonly #open = new Map<string, (answer: string) => void>()

  /** The answer. Rejects with the signal's reason; the question is closed then. */
  ask(questionId: string, signal: AbortSignal): Promise<string> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      if (this.#open.has(questionId)) return reject(new Fault("conflict", "that is asked already"))
      const close = (): void => {
        this.#open.delete(questionId)
        signal.removeEventListener("abort", abort)
      }
      const abort = (): void => {
        close()
        reject(signal.reason)
      }
      signal.addEventListener("abort", abort, { once: true })
      this.#open.set(questionId, (answer) => {
        close()
        resolve(answer)
      })
    })
  }

  answer(questionId: string, answer: string): boolean {
    const resolve = this.#open.get(questionId)
    resolve?.(answer)
    return resolve !== undefined
  }
}
