import { Fault } from "@warren/base/fault.ts"
import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"
import { z } from "zod"
import { given, sessionField, tool, type Bench } from "../tool.ts"

const call = "browser.screenshot"
const imageBytesMax = 4 * 1024 * 1024

export const screenshotTool = tool({
  name: "take_screenshot",
  title: "Take a screenshot",
  doc: "Open a page in a browser inside the session and show what it looks like. The page may be one that a command in the session serves, as http://localhost:3000/.",
  kind: "runs",
  in: z.object({
    session: sessionField,
    url: z
      .string()
      .min(1)
      .max(4096)
      .meta({ examples: ["http://localhost:3000/"] }),
    width: z.int().min(1).max(4096).optional(),
    height: z.int().min(1).max(4096).optional(),
    isWhole: z.boolean().default(false).meta({ description: "The whole page, not only what fits the window." }),
  }),
  async run(input, bench) {
    const image = await taken({ ...given(input), format: "png" }, bench)
    if (image.length <= imageBytesMax) return pictureOf(image, "image/png")
    // Too big for most clients: smaller, if less exact.
    const smaller = await taken({ ...given(input), format: "jpeg" }, bench)
    if (smaller.length <= imageBytesMax) return pictureOf(smaller, "image/jpeg")
    throw new Fault("limit", "the picture is over 4 MiB", { hint: "a smaller width and height, or not the whole page" })
  },
})

function pictureOf(image: Buffer, mimeType: string) {
  return { content: [{ type: "image" as const, data: image.toString("base64"), mimeType }] }
}

async function taken(input: object, { asking }: Bench): Promise<Buffer> {
  if (!Object.hasOwn(userPlane, call)) throw noBrowser()
  const pieces: Buffer[] = []
  try {
    await using stream = (await asking.ask(call, input)) as Conversation<never, unknown>
    for (let item = await stream.next(); item !== undefined; item = await stream.next()) {
      if (item instanceof Chunk) pieces.push(Buffer.from(item.bytes))
    }
  } catch (thrown) {
    // Its own words where it has any: they say what the image lacks.
    if (thrown instanceof Fault && thrown.code === "unsupported" && thrown.hint === undefined) throw noBrowser(thrown)
    throw thrown
  }
  return Buffer.concat(pieces)
}

function noBrowser(cause?: Fault): Fault {
  return new Fault("unsupported", "this session has no browser", {
    cause,
    hint: "use an image with one, as `desktop`: create_session with that image",
  })
}
