import { z } from "zod"

/** What a branch may be called, short of what only git knows. */
export const BranchName = z
  .string()
  .regex(
    /^(?![-./])(?!.*(?:\.\.|\/\/|@\{|\/\.|\.lock(?:\/|$)))[\w./+#@=-]{1,200}(?<![./])$/,
    "that is no name of a branch",
  )
  .meta({ id: "BranchName", examples: ["fix-login"] })

const Ref = z
  .string()
  .regex(/^(?!-)(?!.*(?:\.\.|@\{))[\w./+#@=-]{1,200}$/, "that is no commit, tag or branch")
  .meta({ examples: ["v1.2.0"] })

export const GitIdentity = z
  .object({ name: z.string().min(1).max(256), email: z.string().min(1).max(256) })
  .meta({ id: "GitIdentity", description: "Who commits are by." })

/** Its bytes travel in the request, so that they are few; what is larger is written as a file first. */
export const inlineBytesMax = 512 * 1024
const Data = z.base64().max(Math.ceil((inlineBytesMax * 4) / 3) + 4)

export const FileName = z
  .string()
  .min(1)
  .max(255)
  // eslint-disable-next-line no-control-regex -- It is about control characters.
  .regex(/^(?!\.{1,2}$)[^/\u0000-\u001f\u007f]+$/, "the name of a file, without a folder")

export const InlineFile = z
  .object({ filename: FileName, mime: z.string().min(1).max(128), data: Data.meta({ description: "In base64." }) })
  .meta({ id: "InlineFile" })

/** What a session's agent finds when it starts. */
export const provisionWishes = {
  repo: z
    .string()
    .min(1)
    .max(2_048)
    .optional()
    .meta({
      description:
        "`owner/name` on GitHub, or an address as git understands it. Without a token in it: a key is lent to the session (`keys`).",
      examples: ["acme/widgets"],
    }),
  branch: BranchName.optional().meta({ description: "The remote's if it has it, otherwise a new one." }),
  ref: Ref.optional().meta({
    description: "A commit, tag or branch: what is checked out, or where a new `branch` begins.",
  }),
  folder: z.string().max(1_024).optional().meta({
    description: "Where, below the session's own folder; `/workspace` itself, or a folder named as the repository.",
  }),
  depth: z.int().min(1).max(1_000_000).optional().meta({ description: "How many commits back; all unless said." }),
  identity: GitIdentity.optional(),
  persona: z.string().max(100_000).optional().meta({ description: "Who it is to be; kept outside the repository." }),
  instructions: z
    .array(z.object({ name: FileName, text: z.string().max(100_000) }))
    .max(16)
    .optional()
    .meta({ description: "What it is to heed; kept outside the repository." }),
  attachments: z
    .array(InlineFile)
    .max(8)
    .optional()
    .meta({ description: "Files it is given, outside the repository." }),
}
export const Provision = z.object(provisionWishes)
export type Provision = z.output<typeof Provision>

export const ProvisionStep = z.enum(["identity", "clone", "fetch", "checkout", "files", "attachments"])
export type ProvisionStep = z.output<typeof ProvisionStep>

/** One step on the way to an agent that can begin. */
export const ProvisionProgress = z.object({
  step: ProvisionStep,
  state: z.enum(["running", "done", "failed"]),
  detail: z.string().optional(),
  percent: z.int().min(0).max(100).optional(),
})
export type ProvisionProgress = z.output<typeof ProvisionProgress>

export const Provisioned = z
  .object({
    folder: z.string().optional().meta({ description: "Where the repository lies." }),
    branch: z.string().optional(),
    commit: z.string().optional(),
    persona: z.string().optional().meta({ description: "The file with its persona." }),
    instructions: z.array(z.string()).meta({ description: "The files with its instructions." }),
    attachments: z.array(z.string()),
  })
  .meta({ id: "Provisioned", description: "What an agent found when it started." })
export type Provisioned = z.output<typeof Provisioned>
