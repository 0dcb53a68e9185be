import { cutUp, type Said } from "./step.ts"
import { joined, type Body, type Wire } from "./wire.ts"

const errorTypes: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
}

/** Anthropic's messages. */
export const messages: Wire = {
  name: "messages",
  path: /\/messages$/,
  said: ({ messages: all = [] }) => (all as Body[]).flatMap(saidIn),
  *answer(step, { id, model }) {
    const event = (type: string, more: object): object => ({ event: type, data: { type, ...more } })
    const counted = { input_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
    const message = { id: `msg_${id}`, type: "message", role: "assistant", model, content: [] }
    yield event("message_start", {
      message: { ...message, stop_reason: null, stop_sequence: null, usage: { ...counted, output_tokens: 1 } },
    })
    let index = 0
    const text = "cut" in step ? step.cut : (step.text ?? "")
    if (text !== "") {
      yield event("content_block_start", { index, content_block: { type: "text", text: "" } })
      for (const piece of cutUp(text, "pieces" in step ? step.pieces : 1))
        yield event("content_block_delta", { index, delta: { type: "text_delta", text: piece } })
      if ("cut" in step) return yield "cut"
      yield event("content_block_stop", { index: index++ })
    }
    if ("tool" in step) {
      const call = { type: "tool_use", id: `toolu_${id}`, name: step.tool, input: {} }
      yield event("content_block_start", { index, content_block: call })
      const delta = { type: "input_json_delta", partial_json: JSON.stringify(step.args) }
      yield event("content_block_delta", { index, delta })
      yield event("content_block_stop", { index })
    }
    const stop = { stop_reason: "tool" in step ? "tool_use" : "end_turn", stop_sequence: null }
    yield event("message_delta", { delta: stop, usage: { output_tokens: 7 } })
    yield event("message_stop", {})
  },
  failure: (status, message) => ({
    type: "error",
    error: { type: errorTypes[status] ?? "invalid_request_error", message },
  }),
}

/** Results of tools come in messages of the user; what else stands beside them there is no new prompt. */
function saidIn({ role, content }: Body): Said[] {
  if (role !== "user") return [{ role: "other" }]
  const blocks = Array.isArray(content) ? (content as Body[]) : []
  const results = blocks.filter(({ type }) => type === "tool_result")
  if (results.length > 0) return results.map(() => ({ role: "tool" }))
  // A turn that failed leaves its prompt beside the next one.
  const texts = blocks.length > 0 ? blocks.map((block) => joined([block])) : [joined(content)]
  return texts.map((text) => ({ role: "user", text }))
}
