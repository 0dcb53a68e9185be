import { cutUp, type Said } from "./step.ts"
import { joined, type Body, type Wire } from "./wire.ts"

/** OpenAI's chat completions. */
export const chat: Wire = {
  name: "chat",
  path: /\/chat\/completions$/,
  said: ({ messages = [] }) =>
    (messages as Body[]).map((one): Said => {
      if (one["role"] === "user") return { role: "user", text: joined(one["content"]) }
      return { role: one["role"] === "tool" ? "tool" : "other" }
    }),
  *answer(step, { id, model }) {
    const base = { id: `chatcmpl-${id}`, object: "chat.completion.chunk", created: 1, model }
    const chunk = (delta: object, finish: string | null = null): object => ({
      data: { ...base, choices: [{ index: 0, delta, finish_reason: finish }] },
    })
    yield chunk({ role: "assistant", content: "" })
    if ("reasoning" in step && step.reasoning) yield chunk({ reasoning_content: step.reasoning })
    const text = "cut" in step ? step.cut : (step.text ?? "")
    for (const content of cutUp(text, "pieces" in step ? step.pieces : 1)) yield chunk({ content })
    if ("cut" in step) return yield "cut"
    if ("tool" in step) {
      const call = { name: step.tool, arguments: JSON.stringify(step.args) }
      yield chunk({ tool_calls: [{ index: 0, id: `call_${id}`, type: "function", function: call }] })
    }
    yield chunk({}, "tool" in step ? "tool_calls" : "stop")
    const usage = { prompt_tokens: 10, completion_tokens: 7, total_tokens: 17 }
    yield { data: { ...base, choices: [], usage } }
    yield { data: "[DONE]" }
  },
  failure: (status, message) => ({ error: { message, type: `scripted_${status}` } }),
}
