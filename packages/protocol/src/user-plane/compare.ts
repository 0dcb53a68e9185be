import { z } from "zod"
import { contract } from "../contract.ts"

export const comparedFilesMax = 2_000

export const ComparedFile = z
  .object({
    path: z.string().meta({ description: "Below the folder." }),
    where: z
      .enum(["here", "there", "both"])
      .meta({ description: "Only in this session, only in the other, or in both and not the same." }),
    sizeHere: z.int().min(0).optional(),
    sizeThere: z.int().min(0).optional(),
  })
  .meta({ id: "ComparedFile" })
export type ComparedFile = z.output<typeof ComparedFile>

const which = z.string().min(1).max(128)

export const compareCalls = contract({
  "session.compare": {
    since: 1,
    scope: "files:read",
    http: "GET /v1/sessions/{id}/compare/{other}",
    doc: "Which files of two sessions are not the same, such as of two forks. What git keeps and what programs make again (`node_modules`, caches) is passed over.",
    in: z.object({
      id: which.meta({ description: "The session's id or its name." }),
      other: which.meta({ description: "The other's." }),
      folder: z.string().min(1).max(4_095).optional().meta({
        description: "In both. Unless said, where this one's agent works, or /workspace and the home together.",
      }),
    }),
    out: z.object({
      folder: z.string(),
      files: z.array(ComparedFile),
      isCut: z.boolean().meta({ description: `There are more than ${comparedFilesMax}, or too many to look at.` }),
    }),
    timeoutMs: 180_000,
  },
})
