import type { z } from "zod"
import { Network, type Session, sessionWishes } from "@warren/protocol/user-plane/session.ts"
import { z as schema } from "zod"
import { facts, given, sessionField, tool } from "../tool.ts"

const { name, image, workspace, env, labels, from } = sessionWishes

/** What most want to know of a session; `get_session` tells all. */
export function shown(session: z.output<typeof Session>): Record<string, unknown> {
  const { id, state, reason, image: of, createdAt, usedAt, parent } = session
  const rest = given({ reason, workspace: session.workspace, parent, expiresAt: session.expiresAt })
  return { name: session.name, id, state, ...rest, image: of, labels: session.labels, createdAt, usedAt }
}

const create = tool({
  name: "create_session",
  title: "Create a session",
  doc: "Start a session: a private Linux sandbox in which commands, code and agents run. Answers when it runs. Delete it when it is no longer needed.",
  kind: "makes",
  in: schema.object({
    ...{ name, image, workspace, env, labels },
    from: from.unwrap().meta({ description: "A snapshot to start from." }).optional(),
    network: Network.optional().meta({
      description:
        'What it reaches. Nothing but itself unless said; {"mode":"proxy","access":"all-public"} lets it reach public hosts.',
    }),
    ttlMs: sessionWishes.ttlMs,
    idle: sessionWishes.idle,
  }),
  async run(input, { asking }) {
    return facts({ session: shown(await asking.call("session.create", given(input))) })
  },
})

const list = tool({
  name: "list_sessions",
  title: "List sessions",
  doc: "Sessions, the one made last first. There are more when the answer has a `nextCursor`.",
  kind: "reads",
  in: schema.object({
    cursor: schema.string().max(256).optional().meta({ description: "`nextCursor` of the answer before." }),
    limit: schema.int().min(1).max(200).default(50),
    label: schema.string().max(320).optional().meta({ description: "Only those with this label, as `name=value`." }),
  }),
  async run(input, { asking }) {
    const { items, nextCursor } = await asking.call("session.list", given(input))
    return facts({ sessions: items.map(shown), ...given({ nextCursor }) })
  },
})

const get = tool({
  name: "get_session",
  title: "Read one session",
  doc: "Everything about one session: its state, image, limits, network and life.",
  kind: "reads",
  in: schema.object({ session: sessionField }),
  async run({ session }, { asking }) {
    return facts({ session: await asking.call("session.get", { id: session }) })
  },
})

const fork = tool({
  name: "fork_session",
  title: "Fork a session",
  doc: "New sessions with the files this one has now, to try things side by side. Programs are not copied.",
  kind: "makes",
  in: schema.object({
    session: sessionField,
    count: schema.int().min(1).max(100).default(1),
    name: name.unwrap().meta({ description: "What the fork is called; several get numbers." }).optional(),
  }),
  async run({ session, ...wishes }, { asking }) {
    const { sessions } = await asking.call("session.fork", { id: session, ...given(wishes) })
    return facts({ sessions: sessions.map(shown) })
  },
})

const hibernate = tool({
  name: "hibernate_session",
  title: "Hibernate a session",
  doc: "Stop its programs and keep its files. The next use wakes it.",
  kind: "changes",
  in: schema.object({ session: sessionField }),
  async run({ session }, { asking }) {
    return facts({ session: shown(await asking.call("session.hibernate", { id: session })) })
  },
})

const restore = tool({
  name: "restore_session",
  title: "Restore a session",
  doc: "Start a hibernated, stopped or failed session again, with its files.",
  kind: "makes",
  in: schema.object({ session: sessionField }),
  async run({ session }, { asking }) {
    return facts({ session: shown(await asking.call("session.restore", { id: session })) })
  },
})

const remove = tool({
  name: "delete_session",
  title: "Delete a session",
  doc: "End a session and take everything away but its workspace. It cannot be undone.",
  kind: "changes",
  in: schema.object({ session: sessionField }),
  async run({ session }, { asking }) {
    await asking.call("session.delete", { id: session })
    return facts({ deleted: session })
  },
})

export const sessionTools = [create, list, get, fork, hibernate, restore, remove]
