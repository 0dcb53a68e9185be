import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Clock } from "@warren/base/clock.ts"
import type { Log } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { canLendLayers, hasDisk, lackOf, type Driver } from "@warren/drivers/driver.ts"
import type { Handlers } from "@warren/protocol/contract.ts"
import { dataCalls } from "@warren/protocol/user-plane.ts"
import { Broker, type Upstreams } from "./broker/broker.ts"
import { leaseMigrations, Leases } from "./broker/leases.ts"
import { vaultKeys } from "./broker/vault-keys.ts"
import { Chats } from "./chat/chats.ts"
import { chatHandlers } from "./chat/handlers.ts"
import { chatMetaMigrations, chatMigrations } from "./chat/schema.ts"
import { compareHandlers } from "./compare/handlers.ts"
import { databaseHandlers, UserDatabase } from "./database/user-database.ts"
import { waysOut } from "./egress/ways-out.ts"
import { fileHandlers } from "./files/handlers.ts"
import { withAgents } from "./hub/agent-briefs.ts"
import { agentHandlers } from "./hub/handlers.ts"
import { forgetDeleted } from "./hub/forget-deleted.ts"
import { Heritage } from "./hub/heritage.ts"
import { Hub } from "./hub/hub.ts"
import { HubStore } from "./hub/hub-store.ts"
import { Attachments } from "./hub/provision/attachments.ts"
import type { Transcription } from "./hub/provision/transcription.ts"
import { SandboxPlaces } from "./hub/sandbox-places.ts"
import { hubMigrations, provisionMigrations, recitalMigrations } from "./hub/schema.ts"
import { turnForks } from "./hub/turn-forks.ts"
import { tunnelHandlers } from "./gateway/handlers.ts"
import { tunnelMigrations } from "./gateway/tunnel-store.ts"
import { Tunnels } from "./gateway/tunnels.ts"
import { Forge } from "./git/forge.ts"
import { gitHandlers } from "./git/handlers.ts"
import type { ToolAnswerer } from "./hub/tool-desk.ts"
import { imageHandlers } from "./images/handlers.ts"
import { Images } from "./images/images.ts"
import { keeperFor } from "./images/keeper/open.ts"
import type { EmbeddingEndpoint } from "./memory/embeddings.ts"
import { memoryMigrations } from "./memory/memories.ts"
import { Memory, memoryHandlers } from "./memory/memory.ts"
import { madeMigrations, MadeStore } from "./once/made.ts"
import { onceEach } from "./once/once.ts"
import { environmentWith } from "./processes/environment.ts"
import { processHandlers } from "./processes/handlers.ts"
import { openEngine, type Engine } from "./sessions/engine.ts"
import { sessionHandlers } from "./sessions/handlers.ts"
import { sessionMigrations } from "./sessions/session-store.ts"
import { snapshotMigrations } from "./sessions/snapshot-store.ts"
import { stoppedUnder } from "./sessions/stopped-under.ts"
import { browserHandlers, serviceHandlers } from "./services/handlers.ts"
import { Installer } from "./services/installer.ts"
import { Services } from "./services/services.ts"
import { terminalHandlers } from "./terminals/handlers.ts"
import { Terminals } from "./terminals/terminals.ts"
import { Family, familyMigrations } from "./tools/family.ts"
import { Tools } from "./tools/tools.ts"
import { secretHandlers, Vault, vaultMigrations } from "./vault/vault.ts"
import { workspaceHandlers } from "./workspaces/handlers.ts"
import { plainDisk } from "./workspaces/disk.ts"
import { emptyFolder } from "./workspaces/remove-tree.ts"
import { workspaceMigrations } from "./workspaces/schema.ts"
import { Workspaces } from "./workspaces/workspaces.ts"

export interface UserPlaneOptions {
  /** The user's folder: `shared`, `tmp`, `vault` and `internal` are in it. */
  readonly root: string
  /** The first is the one sessions get unless they ask for another. */
  readonly drivers: readonly [Driver, ...Driver[]]
  /** The image of sessions that ask for none. */
  readonly image: string
  /** The program that runs the user's own SQL. */
  readonly sqlProgram: string
  /** The program that keeps an ordinary user's layers; without it they have no images but the machine itself. */
  readonly keeperProgram?: string | undefined
  /** The program that drives an agent inside its sandbox. */
  readonly supervisorProgram: string
  /** The recipes that come with Warren. */
  readonly recipes: string
  readonly upstreams: Required<Pick<Upstreams, "anthropic" | "openai">> & Pick<Upstreams, "git">
  /** Where pull requests are asked for, by git host. */
  readonly forges?: Readonly<Record<string, string>> | undefined
  readonly embeddings?: EmbeddingEndpoint | undefined
  readonly transcription?: Transcription | undefined
  /** What every program of every session finds in its environment. */
  readonly env: Readonly<Record<string, string>>
  readonly sessionsMax: number
  readonly poolBytes: number
  readonly poolLeast: number
  readonly clock: Clock
  readonly log: Log
}

/** A user plane that does the work itself. */
export interface LocalUserPlane extends AsyncDisposable {
  readonly handlers: Handlers<typeof dataCalls>
  readonly engine: Engine
  readonly tunnels: Tunnels
  readonly terminals: Terminals
  readonly services: Services
  readonly tools: { readonly shell: boolean; readonly browser: boolean }
  readonly degraded: readonly { readonly code: string; readonly detail: string }[]
}

/** New ones go at the end: the order is part of the database. */
export const migrations = [
  ...sessionMigrations,
  ...snapshotMigrations,
  ...leaseMigrations,
  ...vaultMigrations,
  ...memoryMigrations,
  ...chatMigrations,
  ...workspaceMigrations,
  ...madeMigrations,
  ...tunnelMigrations,
  ...chatMetaMigrations,
  ...hubMigrations,
  ...provisionMigrations,
  ...familyMigrations,
  ...recitalMigrations,
]

/** Nobody else writes here. Should somebody hold it all the same, everybody waits while one waits: better no than that. */
const busyMs = 500

export async function openUserPlane(options: UserPlaneOptions): Promise<LocalUserPlane> {
  const { root, clock, log, drivers } = options
  const [driver] = drivers
  for (const folder of ["shared", "tmp", "vault", "internal"])
    mkdirSync(join(root, folder), { recursive: true, mode: 0o700 })
  // Nobody else is here: what is being made in it was being made by one that died.
  await emptyFolder(join(root, "tmp"))
  await using scope = new Scope()
  const database = scope.use(
    new Database(join(root, "internal", "warren.db"), { migrations, now: () => clock.now(), busyMs }),
  )
  const vault = await Vault.open({ database, clock, log, keyFile: join(root, "vault", "key") })
  const leases = new Leases(database, clock)
  const broker = scope.use(new Broker({ leases, keys: vaultKeys(vault), upstreams: options.upstreams, log, clock }))
  const imagesRoot = (canLendLayers(driver) ? driver.imagesFolder : undefined) ?? join(root, "internal", "images")
  const keeper = options.keeperProgram === undefined ? undefined : keeperFor(driver, options.keeperProgram)
  const images = scope.use(await Images.open({ root: imagesRoot, log, clock, keeper }))
  const disk = hasDisk(driver) ? driver.disk : plainDisk(join(root, "shared", "workspaces"))
  const workspaces = scope.use(await Workspaces.open({ database, clock, log, disk }))
  const held = {
    async hold(name: string, holder: string) {
      await workspaces.ensure(name)
      return workspaces.hold(name, holder)
    },
    release: (holder: string) => workspaces.release(holder),
  }
  const llms = {
    "llm:anthropic": new URL(options.upstreams.anthropic).host,
    "llm:openai": new URL(options.upstreams.openai).host,
  }
  const engine = scope.use(
    await openEngine({
      ...options,
      ...{ database, images, workspaces: held },
      waysOut: waysOut({ root: join(root, "internal", "egress"), broker, leases, llms, log, clock }),
    }),
  )
  await images.sweep(driver)
  images.releaseOthers([...engine.store.sandboxes().map(({ id }) => id), ...engine.snapshots.ids()])
  const memory = scope.use(new Memory({ database, clock, log, embeddings: options.embeddings }))
  const userDatabase = scope.use(
    new UserDatabase({ path: join(root, "shared", "user.db"), program: options.sqlProgram }),
  )
  const chats = new Chats(database, clock)
  const hubStore = new HubStore(database)
  chats.finalizeLost(hubStore.speaking())
  const { sessions, snapshots, pool } = engine
  const tunnels = scope.use(new Tunnels(database, sessions, clock))
  const environmentOf = environmentWith(options.env, images, vault)
  const terminals = new Terminals(sessions, environmentOf, clock)
  const services = scope.use(new Services({ sessions, environmentOf, clock, log }))
  const { supervisorProgram: program } = options
  const places = new SandboxPlaces({ sessions, environmentOf, program, tools: toolsOf(driver).tools })
  const changed = (session: string): void => sessions.announce(session)
  const family = new Family(database, clock)
  const ask: ToolAnswerer = (...asked) => tools.call(...asked)
  const hub = scope.use(new Hub({ store: hubStore, chats, places, clock, log, changed, tools: ask }))
  const tools = new Tools({ sessions, hub, store: hubStore, family, chats, tunnels, environmentOf })
  const forget = async (session: string): Promise<void> => {
    await hub.forget(session)
    await tools.orphaned(session)
  }
  scope.use(forgetDeleted(sessions.events, forget))
  await tools.sweep()
  const forge = new Forge({ bases: options.forges, keys: vaultKeys(vault), log })
  const files = new Attachments({ places, transcription: options.transcription, scratch: join(root, "tmp") })
  const handlers: Handlers<typeof dataCalls> = {
    ...withAgents(sessionHandlers(sessions, snapshots), hub),
    ...turnForks({ sessions, snapshots, hub, heritage: new Heritage(hubStore, chats, clock) }),
    ...processHandlers(sessions, environmentOf),
    ...fileHandlers(sessions),
    ...imageHandlers({ images, driver, sessions, pool, recipes: options.recipes, scratch: join(root, "tmp") }),
    ...workspaceHandlers(workspaces),
    ...secretHandlers(vault),
    ...memoryHandlers(memory),
    ...chatHandlers(chats),
    ...agentHandlers(hub, files, (which) => sessions.get(which).id),
    ...gitHandlers({ sessions, environmentOf, forge, folderOf: (id) => hubStore.agent(id)?.provisioned?.folder }),
    ...compareHandlers({ sessions, environmentOf, folderOf: (id) => hubStore.agent(id)?.provisioned?.folder }),
    ...databaseHandlers(userDatabase),
    ...tunnelHandlers(tunnels),
    ...terminalHandlers(terminals),
    ...serviceHandlers(services, new Installer({ sessions, terminals, recipes: options.recipes })),
    ...browserHandlers(services, sessions, clock),
  }
  const owned = scope.move()
  const truthful = stoppedUnder(dataCalls, handlers, (session) => sessions.watch(session))
  const once = onceEach(dataCalls, truthful, new MadeStore(database, clock))
  return {
    handlers: once,
    engine,
    tunnels,
    terminals,
    services,
    ...toolsOf(driver),
    [Symbol.asyncDispose]: () => owned.close(),
  }
}

/** What agents can be given on this driver, and what is less than it could be. */
function toolsOf(driver: Driver): Pick<LocalUserPlane, "tools" | "degraded"> {
  const tools = {
    shell: lackOf(driver, "shellTools") === undefined,
    browser: lackOf(driver, "browserTools") === undefined,
  }
  const degraded = Object.entries(driver.abilities.reasons).map(([code, detail]) => ({ code, detail }))
  return { tools, degraded }
}
