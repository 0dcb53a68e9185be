import { z } from "zod"
import { contract } from "../contract.ts"
import { GitState } from "../user-plane/git.ts"
import { BranchName } from "../user-plane/provision.ts"
import { Tunnel, TunnelName } from "../user-plane/tunnels.ts"
import { AgentStatus, promptCharsMax } from "./words.ts"

const Child = z.string().min(1).max(128).meta({ description: "Id or name of a session that this one started." })

export const Relative = z.object({
  session: z.string(),
  name: z.string(),
  state: z.string().meta({ description: "`running`, `hibernated`, `stopped`, …" }),
  status: AgentStatus.optional().meta({ description: "Of its agent." }),
  waiting: z.int().min(0).meta({ description: "Prompts that are not done." }),
  isComplete: z.boolean().meta({ description: "It said that its task is done." }),
})
export type Relative = z.output<typeof Relative>

const ToolMessage = z.object({
  number: z.int(),
  from: z.string().meta({ description: "`user`, `assistant`, or the session it came from." }),
  text: z.string(),
  at: z.iso.datetime(),
})

export const toolLimits = {
  /** Sessions that one may have started and that are not over. */
  childrenMax: 8,
  /** Children of children of … the session a person started. */
  depthMax: 3,
  callsMax: 16,
  callMs: 120_000,
  messagesKept: 500,
  imageBytesMax: 10 * 1024 * 1024,
  /** Of what is read at once. */
  readCharsMax: 200_000,
} as const

/** What an agent may ask of Warren, for its own session and those it has started. */
export const agentTools = contract({
  spawn_session: {
    since: 1,
    doc: "Start another session with an agent like yourself and give it a task. It has the same rights as this session, and a sandbox of its own.",
    in: z.object({
      task: z.string().min(1).max(promptCharsMax),
      name: z.string().max(63).optional(),
      repo: z.string().max(2_048).optional(),
      branch: BranchName.optional(),
      ref: z.string().max(200).optional(),
      shareWorkspace: z.boolean().default(false).meta({ description: "Work in the same /workspace as this session." }),
    }),
    out: z.object({ session: z.string(), name: z.string() }),
  },
  list_sessions: {
    since: 1,
    doc: "The sessions that this one has started, and how they are.",
    in: z.object({}),
    out: z.object({ sessions: z.array(Relative) }),
  },
  terminate_session: {
    since: 1,
    doc: "End a session that this one has started, and what it has started.",
    in: z.object({ session: Child }),
    out: z.object({ isEnded: z.boolean() }),
  },
  session_status: {
    since: 1,
    doc: "How this session is, or one that it has started.",
    in: z.object({ session: Child.optional() }),
    out: Relative.extend({ parent: z.string().optional(), children: z.int() }),
  },
  send_message: {
    since: 1,
    doc: "Say something to the agent of a session that this one has started; or, with `parent`, leave a message for the one that started this.",
    in: z.object({ session: Child.meta({ examples: ["parent"] }), text: z.string().min(1).max(promptCharsMax) }),
    out: z.object({ isSent: z.boolean() }),
  },
  read_messages: {
    since: 1,
    doc: "Messages that other sessions left for this one; or, with `session`, what was said in one that this one has started.",
    in: z.object({
      session: Child.optional(),
      after: z.int().min(0).default(0).meta({ description: "Only those with a larger `number`." }),
      limit: z.int().min(1).max(100).default(20),
    }),
    out: z.object({ messages: z.array(ToolMessage) }),
  },
  complete: {
    since: 1,
    doc: "Say that the task of this session is done, and what came of it. Whoever started it is told.",
    in: z.object({ summary: z.string().min(1).max(20_000) }),
    out: z.object({ isTold: z.boolean() }),
  },
  git_state: {
    since: 1,
    doc: "The branch, the commit and what is not committed in the repository of this session.",
    in: z.object({}),
    out: GitState,
  },
  upload_image: {
    since: 1,
    doc: "Show an image file of this session to the person in the chat.",
    in: z.object({ path: z.string().min(1).max(4_095), caption: z.string().max(2_000).optional() }),
    out: z.object({ messageId: z.string() }),
  },
  create_tunnel: {
    since: 1,
    doc: "Give a port in this session a name under which its owner can open it in a browser.",
    in: z.object({ name: TunnelName, port: z.int().min(1).max(65_535) }),
    out: Tunnel,
  },
  list_tunnels: {
    since: 1,
    doc: "The tunnels of this session.",
    in: z.object({}),
    out: z.object({ tunnels: z.array(Tunnel) }),
  },
  delete_tunnel: {
    since: 1,
    doc: "Take a tunnel of this session away.",
    in: z.object({ name: TunnelName }),
    out: z.object({ isDeleted: z.boolean() }),
  },
})
export type AgentTools = typeof agentTools
export type ToolName = keyof AgentTools
