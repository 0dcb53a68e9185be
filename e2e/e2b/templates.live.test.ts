import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { E2bSystem, sdks } from "./system.ts"

const system = await E2bSystem.start()
const context = mkdtempSync(join(tmpdir(), "e2b-context-"))
afterAll(async () => {
  rmSync(context, { recursive: true })
  await system[Symbol.asyncDispose]()
})
const { options } = system
mkdirSync(join(context, "src", "deep"), { recursive: true })
writeFileSync(join(context, "src", "main.txt"), "main")
writeFileSync(join(context, "src", "deep", "inner.txt"), "inner")
writeFileSync(join(context, "single.txt"), "single")

describe.each(sdks)("templates by $version", ({ sdk, version }) => {
  const name = `app-${version.replace(".", "-")}`
  const build = async (
    template: Parameters<typeof sdk.Template.build>[0],
    as: string,
    more: object = {},
  ): Promise<string[]> => {
    const logs: string[] = []
    const how = { ...options, ...more, onBuildLogs: (entry: { message: string }) => void logs.push(entry.message) }
    await sdk.Template.build(template, as, how as never)
    return logs
  }

  test("are built, with steps of every kind, and started from", async () => {
    const template = sdk
      .Template({ fileContextPath: context })
      .fromTemplate("base")
      .setEnvs({ COLOR: "green" })
      .setWorkdir("/srv/app")
      .copy("src", "code")
      .copy("single.txt", "/srv/renamed.txt", { mode: 0o600 })
      .runCmd("echo built by $(whoami) in $(pwd) $COLOR > built.txt")
      .runCmd("echo as root > /srv/root.txt", { user: "root" })
      .setStartCmd("echo started > /tmp/started; sleep 1000", "test -e /tmp/started")
    const logs = await build(template, name, { cpuCount: 1, memoryMB: 384 })
    expect(logs.some((line) => line.includes("RUN echo built"))).toBe(true)
    expect(await sdk.Template.exists(name, options)).toBe(true)
    expect(await sdk.Template.exists("never-built", options)).toBe(false)
    const sandbox = await sdk.Sandbox.create(name, options)
    const { stdout } = await sandbox.commands.run(
      "pwd; cat built.txt code/main.txt code/deep/inner.txt; echo; echo $COLOR; cat /tmp/started",
    )
    expect(stdout).toBe("/srv/app\nbuilt by user in /srv/app green\nmaininner\ngreen\nstarted\n")
    expect((await sandbox.commands.run("stat -c '%U %a' /srv/renamed.txt /srv/root.txt")).stdout).toBe(
      "user 600\nroot 644\n",
    )
    expect(await sandbox.getInfo()).toMatchObject({ templateId: name, memoryMB: 384, cpuCount: 1 })
    await sandbox.kill()
  })

  test("go on from the last step that was done before", async () => {
    const steps = (last: string) =>
      sdk.Template().fromTemplate("base").runCmd(`head -c 16 /dev/urandom | base64 > ~/once # ${name}`).runCmd(last)
    const once = async (): Promise<string> => {
      const sandbox = await sdk.Sandbox.create(`${name}-cached`, options)
      const text = await sandbox.files.read("once")
      await sandbox.kill()
      return text
    }
    const first = await build(steps("true"), `${name}-cached`)
    expect(first.some((line) => line.startsWith("CACHED"))).toBe(false)
    const value = await once()
    const second = await build(steps("echo more"), `${name}-cached`)
    expect(second.filter((line) => line.startsWith("CACHED")).length).toBe(1)
    expect(second).toContain("more")
    expect(await once()).toBe(value)
    await build(steps("echo more"), `${name}-cached`, { skipCache: true })
    expect(await once()).not.toBe(value)
  })

  test("that cannot be built say which step, and why", async () => {
    const wrong = sdk.Template().fromTemplate("base").runCmd("true").runCmd("echo before; exit 9")
    await expect(build(wrong, `${name}-wrong`)).rejects.toThrow("exit status 9")
    const nobody = sdk.Template().fromTemplate("base").runCmd("whoami", { user: "root123" })
    await expect(build(nobody, `${name}-wrong`)).rejects.toThrow(
      "failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'",
    )
    await expect(build(sdk.Template().fromTemplate("no-such-base").runCmd("true"), `${name}-wrong`)).rejects.toThrow(
      "not found",
    )
    expect(await sdk.Template.exists(`${name}-wrong`, options)).toBe(false)
    await expect(build(sdk.Template().fromTemplate("base"), "Not A Name")).rejects.toThrow("lower-case")
  })

  test("have tags", async () => {
    await build(sdk.Template().fromTemplate("base").runCmd("echo one > ~/which"), `${name}-tagged:v1`)
    await sdk.Template.assignTags(`${name}-tagged:v1`, ["stable"], options)
    const tags = (await sdk.Template.getTags(`${name}-tagged`, options)).map(({ tag }) => tag)
    expect(tags.toSorted()).toEqual(["stable", "v1"])
    const sandbox = await sdk.Sandbox.create(`${name}-tagged:stable`, options)
    expect(await sandbox.files.read("which")).toBe("one\n")
    await sandbox.kill()
    await sdk.Template.removeTags(`${name}-tagged`, ["stable"], options)
    await expect(sdk.Sandbox.create(`${name}-tagged:stable`, options)).rejects.toThrow("not found")
  })

  test("volumes outlive sandboxes, and are reached without one", async () => {
    const volumeOptions = { ...options, apiUrl: options.apiUrl }
    const volume = await sdk.Volume.create(`data-${name}`, options)
    expect((await sdk.Volume.list(options)).map((one) => one.name)).toContain(`data-${name}`)
    await volume.writeFile("/notes/a.txt", "from outside", volumeOptions)
    expect(await volume.exists("/notes/a.txt", volumeOptions)).toBe(true)
    expect((await volume.list("/notes", volumeOptions)).map((entry) => entry.name)).toEqual(["a.txt"])
    const sandbox = await sdk.Sandbox.create("base", { ...options, volumeMounts: { "/mnt/data": volume } })
    expect((await sandbox.commands.run("cat /mnt/data/notes/a.txt; echo from inside > /mnt/data/b.txt")).stdout).toBe(
      "from outside",
    )
    expect((await sandbox.getInfo()).volumeMounts).toEqual([{ name: `data-${name}`, path: "/mnt/data" }])
    await sandbox.kill()
    expect(await volume.readFile("/b.txt", volumeOptions)).toBe("from inside\n")
    await volume.makeDir("/folder", volumeOptions)
    await volume.remove("/notes", volumeOptions)
    expect(await volume.exists("/notes/a.txt", volumeOptions)).toBe(false)
    expect(await sdk.Volume.destroy(volume.volumeId, options)).toBe(true)
    expect(await sdk.Volume.destroy(volume.volumeId, options)).toBe(false)
    await expect(sdk.Volume.connect("no-such-volume", options)).rejects.toThrow("not found")
  })
})
