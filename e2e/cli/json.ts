import { expect, test } from "vitest"
import { verbs } from "../../apps/cli/src/verbs.ts"
import type { CliWorld } from "./world.ts"

/** Every verb, for programs that read what it says. */
export function json(world: CliWorld): void {
  /** Every verb with what it needs, in an order in which each finds what it asks for; `$x` is what a step before answered. */
  const steps: readonly (readonly [string, string, RegExp?])[] = [
    ["status", "status"],
    ["doctor", "doctor"],
    ["logs", "logs --tail 3"],
    ["create", "create --name j --workspace jw"],
    ["ls", "ls"],
    ["inspect", "inspect j"],
    ["update", "update j --ttl 1h"],
    ["run", "run -n --net none true"],
    ["exec", "exec -n j true"],
    ["shell", "shell -n j"],
    ["ps", "ps j"],
    ["kill", "kill j 99999", /not_found/],
    ["agent start", "agent start --session j -d hello"],
    ["agent prompt", "agent prompt -d j again"],
    ["agent status", "agent status j"],
    ["agent answer", "agent answer j yes", /not_found|conflict|invalid/],
    ["agent abort", "agent abort j"],
    ["agent stop", "agent stop j"],
    ["git state", "git state j"],
    ["git files", "git files j", /not_found|invalid|conflict/],
    ["git diff", "git diff j", /not_found|invalid|conflict/],
    ["git pr", "git pr j --title t", /not_found|invalid|conflict|forbidden/],
    ["pause", "pause j"],
    ["resume", "resume j"],
    ["hibernate", "hibernate j"],
    ["restore", "restore j"],
    ["snapshot", "snapshot j"],
    ["snapshots ls", "snapshots ls"],
    ["rollback", "rollback j $snapshot"],
    ["fork", "fork j --name k"],
    ["compare", "compare j k"],
    ["denials", "denials j"],
    ["stats", "stats --once"],
    ["cp", "cp package.json j:/tmp/x"],
    ["forward", "forward j 0", /invalid/],
    ["images ls", "images ls"],
    ["images inspect", "images inspect none", /not_found/],
    ["images pull", "images pull localhost:1/none:1", /unavailable|not_found|forbidden|timeout/],
    ["images import", "images import none.tar", /not_found/],
    ["images build", "images build . --name x", /not_found/],
    ["images tag", "images tag none x", /not_found/],
    ["images rm", "images rm none", /not_found/],
    ["images gc", "images gc"],
    ["images commit", "images commit j x", /conflict|unsupported|invalid/],
    ["workspaces ls", "workspaces ls"],
    ["workspaces create", "workspaces create jv"],
    ["workspaces usage", "workspaces usage jv"],
    ["workspaces mkdir", "workspaces mkdir jv a"],
    ["workspaces mv", "workspaces mv jv a b"],
    ["workspaces files", "workspaces files jv"],
    ["workspaces remove", "workspaces remove jv b -r"],
    ["workspaces rm", "workspaces rm jv"],
    ["secrets set", "secrets set S"],
    ["secrets ls", "secrets ls"],
    ["secrets rm", "secrets rm S"],
    ["login", "login"],
    ["token create", "token create --name t --scope exec"],
    ["token ls", "token ls"],
    ["token rm", "token rm $token-create"],
    ["memory add", "memory add text"],
    ["memory ls", "memory ls"],
    ["memory search", "memory search text"],
    ["memory get", "memory get $memory-add"],
    ["memory rm", "memory rm $memory-add"],
    ["snapshots rm", "snapshots rm $snapshot"],
    ["stop", "stop j"],
    ["rm", "rm j k"],
    ["completion", "completion bash"],
    ["_complete", "_complete -- ru"],
  ]

  test("every verb answers in JSON, and its faults are JSON", { timeout: 180_000 }, async () => {
    const ids = new Map<string, string>()
    for (const [name, line, refusal] of steps) {
      const words = line.replaceAll(/\$([\w-]+)/g, (_, key: string) => ids.get(key) ?? "").split(" ")
      const { stdout, stderr } = await world.cli.run(["--json", ...words], "input")
      if (!refusal) expect(stderr, line).toBe("")
      expect(refusal ? stderr : stdout, `${line}: ${stdout}${stderr}`).not.toBe("")
      const said = (refusal ? stderr : stdout).trim().split("\n")
      const [value] = said.map((each) => JSON.parse(each) as { id?: string; error?: { code: string } })
      if (refusal) expect(value?.error?.code, line).toMatch(refusal)
      ids.set(name.replace(" ", "-"), value?.id ?? "")
    }
    // Those that are missing here keep a terminal or start something; their JSON is tested with the rest of them.
    const others = [
      "start",
      "restart",
      "_serve",
      "attach",
      "mcp",
      ...verbs.map(({ name }) => name).filter((name) => /^(user|launcher)\b/.test(name)),
    ]
    expect(verbs.map(({ name }) => name).toSorted()).toEqual([...steps.map(([name]) => name), ...others].toSorted())
  })
}
