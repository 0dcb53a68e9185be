import type { Verb } from "./verb.ts"
import { agentVerbs } from "./verbs/agents.ts"
import { compareVerb } from "./verbs/compare.ts"
import { completionVerbs } from "./verbs/completion.ts"
import { copyVerb } from "./verbs/copy.ts"
import { forwardVerb } from "./verbs/forward.ts"
import { gitVerbs } from "./verbs/git.ts"
import { imageVerbs } from "./verbs/images.ts"
import { launcherVerb } from "./verbs/launcher.ts"
import { loginVerb } from "./verbs/login.ts"
import { logsVerb } from "./verbs/logs.ts"
import { mcpVerb } from "./verbs/mcp.ts"
import { memoryVerbs } from "./verbs/memory.ts"
import { programVerbs } from "./verbs/programs.ts"
import { secretVerbs } from "./verbs/secrets.ts"
import { sessionVerbs } from "./verbs/sessions.ts"
import { snapshotVerbs } from "./verbs/snapshots.ts"
import { startVerbs } from "./verbs/start.ts"
import { statsVerb } from "./verbs/stats.ts"
import { statusVerbs } from "./verbs/status.ts"
import { stopVerb } from "./verbs/stop.ts"
import { tokenVerbs } from "./verbs/tokens.ts"
import { userVerbs } from "./verbs/users.ts"
import { workspaceVerbs } from "./verbs/workspaces.ts"

/** Everything the CLI can do. Parsing, help, completion and the reference are made from this table. */
export const verbs: readonly Verb[] = [
  ...startVerbs,
  stopVerb,
  ...statusVerbs,
  logsVerb,
  loginVerb,
  ...tokenVerbs,
  mcpVerb,
  launcherVerb,
  ...userVerbs,
  ...programVerbs,
  forwardVerb,
  ...agentVerbs,
  ...gitVerbs,
  ...sessionVerbs,
  compareVerb,
  ...snapshotVerbs,
  statsVerb,
  copyVerb,
  ...workspaceVerbs,
  ...secretVerbs,
  ...memoryVerbs,
  ...imageVerbs,
  ...completionVerbs(() => verbs),
]
