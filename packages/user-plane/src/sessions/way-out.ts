import type { KeyUse as KeyUseSchema } from "@warren/protocol/user-plane/session.ts"
import type { z } from "zod"
import type { SandboxId } from "@warren/drivers/sandbox-spec.ts"

export type KeyUse = z.output<typeof KeyUseSchema>

/** What a sandbox may reach through its proxy. */
export interface Reach {
  readonly access: "list" | "all-public"
  readonly allow: readonly string[]
}

export interface Refused {
  readonly time: string
  readonly host: string
  readonly port: number
  readonly reason: string
  readonly message: string
}

/** The proxy of one sandbox. It answers in a folder of its own, which outlives the runner. */
export interface WayOut extends AsyncDisposable {
  /** In force when it resolves. Rules that mean nothing are refused. */
  allow(reach: Reach): Promise<void>
  /** Keys that may be used without being seen. */
  lend(keys: readonly KeyUse[]): void
  /** What makes programs inside use it. */
  environment(): Readonly<Record<string, string>>
  denials(after: number): readonly { readonly seq: number; readonly item: Refused }[]
}

/** Where ways out come from. */
export interface WaysOut {
  /** The folder a sandbox is given: fixed before it is made. */
  folder(id: SandboxId): string
  /** Allows nothing until told otherwise. */
  open(id: SandboxId): Promise<WayOut>
  /** The sandbox is gone for good. */
  remove(id: SandboxId): Promise<void>
}
