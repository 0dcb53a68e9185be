import { writeDown } from "../../e2e/web/long-conversation.ts"
import { FirstPage } from "../first-page.ts"
import { defineMetric } from "../metric.ts"
import type { Runner } from "../runner.ts"

const conversations = { ten: 10, many: 10_000 } as const

/** From the link of a session to its last message, when ten thousand were said in it; against one in which ten were. */
export const metric = defineMetric({
  name: "web.long-chat",
  unit: "ms",
  goal: { ratioMax: 1.5 },
  samples: { full: 20, quick: 4 },
  prepare: (context) =>
    FirstPage.start(context, async (runner) => {
      for (const [name, count] of Object.entries(conversations)) await converse(runner, name, count)
    }),
  run: (page) => openAtEnd(page, "many"),
  baseline: { name: "ten messages", run: (page) => openAtEnd(page, "ten") },
})

async function openAtEnd(page: FirstPage, name: keyof typeof conversations): Promise<number> {
  const last = JSON.stringify(`line 0 of message ${conversations[name] - 1}`)
  const { shownMs } = await page.open(
    `/s/${name}`,
    `document.querySelector(".messages")?.textContent.includes(${last})`,
  )
  return shownMs
}

async function converse(runner: Runner, name: string, count: number): Promise<void> {
  const { id } = await runner.create({ name, network: { mode: "none" } })
  await runner.call("agent.start", { session: id, spec: { adapter: "scripted" } })
  await runner.call("agent.prompt", { session: id, text: "Let us begin.", channel: "web:default" })
  for (;;) {
    const { prompts, channels } = await runner.call("agent.get", { session: id })
    const [channel] = channels
    if (prompts.length === 0 && channel) return writeDown(runner.home, channel.chatId, count)
    await new Promise((wait) => setTimeout(wait, 20))
  }
}
