import { cutUp, type Said } from "./step.ts"
import { joined, type Body, type Wire } from "./wire.ts"

/** OpenAI's responses. */
export const responses: Wire = {
  name: "responses",
  path: /\/responses$/,
  said: ({ input }) => {
    if (typeof input === "string") return [{ role: "user", text: input }]
    return ((input ?? []) as Body[]).map((one): Said => {
      if (one["role"] === "user") return { role: "user", text: joined(one["content"]) }
      return { role: String(one["type"]).endsWith("_output") ? "tool" : "other" }
    })
  },
  *answer(step, { id, model }) {
    let sequence = 0
    const output: object[] = []
    const event = (type: string, more: object): object => ({
      event: type,
      data: { type, sequence_number: sequence++, ...more },
    })
    const response = (status: string): object => ({
      response: {
        ...{ id: `resp_${id}`, object: "response", created_at: 1, status, model, output, tools: [] },
        parallel_tool_calls: true,
        usage:
          status === "completed"
            ? {
                ...{ input_tokens: 10, output_tokens: 7, total_tokens: 17 },
                input_tokens_details: { cached_tokens: 0 },
                output_tokens_details: { reasoning_tokens: 0 },
              }
            : null,
      },
    })
    yield event("response.created", response("in_progress"))
    const text = "cut" in step ? step.cut : (step.text ?? "")
    if (text !== "") {
      const item = { id: `msg_${id}`, type: "message", role: "assistant" }
      const at = { item_id: item.id, output_index: output.length, content_index: 0 }
      const part = (said: string): object => ({ type: "output_text", text: said, annotations: [] })
      const added = { ...item, status: "in_progress", content: [] }
      yield event("response.output_item.added", { output_index: output.length, item: added })
      yield event("response.content_part.added", { ...at, part: part("") })
      for (const delta of cutUp(text, "pieces" in step ? step.pieces : 1))
        yield event("response.output_text.delta", { ...at, delta })
      if ("cut" in step) return yield "cut"
      yield event("response.output_text.done", { ...at, text })
      const done = { ...item, status: "completed", content: [part(text)] }
      yield event("response.output_item.done", { output_index: output.length, item: done })
      output.push(done)
    }
    if ("tool" in step) {
      const call = { id: `fc_${id}`, type: "function_call", name: step.tool, call_id: `call_${id}` }
      const at = { output_index: output.length }
      const written = JSON.stringify(step.args)
      yield event("response.output_item.added", { ...at, item: { ...call, status: "in_progress", arguments: "" } })
      yield event("response.function_call_arguments.delta", { ...at, item_id: call.id, delta: written })
      yield event("response.function_call_arguments.done", { ...at, item_id: call.id, arguments: written })
      const done = { ...call, status: "completed", arguments: written }
      yield event("response.output_item.done", { ...at, item: done })
      output.push(done)
    }
    yield event("response.completed", response("completed"))
  },
  failure: (status, message) => ({ error: { message, type: `scripted_${status}`, code: null, param: null } }),
}
