import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { expect, test } from "vitest"
import type { CliWorld } from "./world.ts"

/** What is kept when no session runs. */
export function keptThings(world: CliWorld): void {
  const { said, session } = world

  /** The smallest tree that has a shell: busybox and what it is linked with. */
  function smallTree(): string {
    const root = world.folder.at("root")
    const script = `mkdir -p "$0/bin" "$0/opt" && cp /bin/busybox "$0/bin/" && ln -s busybox "$0/bin/sh" && ln -s busybox "$0/bin/cat"
      for library in $(ldd /bin/busybox | grep -o '/[^ ]*' || true); do cp --parents "$library" "$0"; done
      tar -C "$0" -cf "$0.tar" .`
    execFileSync("sh", ["-c", script, root])
    return `${root}.tar`
  }

  test("an image is imported, built upon, used, committed, tagged and removed", async () => {
    await said("images", "import", smallTree(), "--name", "small", "--format", "rootfs")
    expect(await said("run", "--image", "small", "--net", "none", "sh", "-c", "echo in small")).toBe("in small\n")
    const context = world.folder.at("context")
    mkdirSync(context)
    writeFileSync(`${context}/Recipe`, "FROM small\nARG WORD=none\nCOPY hello /opt/hello\nRUN echo $WORD > /opt/word\n")
    writeFileSync(`${context}/hello`, "hello\n")
    const build = ["images", "build", context, "--name", "mine:1", "--arg", "WORD=said", "--net", "none"]
    expect(await world.cli.run(build)).toMatchObject({ code: 0, stderr: expect.stringMatching(/COPY hello/) as string })
    await using _ = await session("maker", "--image", "mine:1", "--net", "none")
    expect(await said("exec", "maker", "cat", "/opt/hello", "/opt/word")).toBe("hello\nsaid\n")
    await said("exec", "--as", "root", "maker", "sh", "-c", "echo more > /opt/more")
    await said("stop", "maker")
    await said("images", "commit", "maker", "mine:2")
    expect(await said("run", "--image", "mine:2", "--net", "none", "cat", "/opt/more")).toBe("more\n")
    await said("images", "tag", "mine:2", "other")
    expect(JSON.parse(await said("images", "inspect", "other", "--json"))).toMatchObject({
      names: expect.arrayContaining(["docker.io/library/other:latest"]) as string[],
    })
    expect(await said("_complete", "--", "run", "--image", "sm")).toBe("small\n")
  })

  test("what cannot become an image is refused, and names can be taken away", async () => {
    expect((await world.cli.run(["images", "import", world.folder.at("none.tar")])).code).toBe(3)
    expect((await world.cli.run(["images", "import", "-", "--name", "x"], "no archive")).code).toBe(2)
    expect((await world.cli.run(["images", "build", world.folder.path, "--name", "x"])).code).toBe(3)
    await said("images", "rm", "mine:1", "mine:2", "other", "small")
    await said("images", "gc")
    expect((await world.cli.run(["images", "inspect", "small"])).code).toBe(3)
  })

  test("a workspace outlives its session", async () => {
    await said("workspaces", "create", "desk", "--limit", "50m")
    await said("run", "--workspace", "desk", "sh", "-c", "mkdir src; echo hi > src/a")
    expect(await said("run", "--workspace", "desk", "cat", "src/a")).toBe("hi\n")
    expect(await said("workspaces", "files", "desk", "src")).toMatch(/ a\n$/)
    await said("workspaces", "mkdir", "desk", "x/y")
    await said("workspaces", "mv", "desk", "src/a", "x/b")
    await said("workspaces", "remove", "desk", "src", "-r")
    await said("workspaces", "usage", "desk")
    await said("workspaces", "rm", "desk")
    expect((await world.cli.run(["workspaces", "files", "desk"])).code).toBe(3)
  })

  test("a secret comes from the input, reaches a program, and is nowhere to be read", async () => {
    expect(await world.cli.run(["secrets", "set", "TOKEN"], "hunter2\n")).toMatchObject({
      code: 0,
      stdout: "TOKEN is kept.\n",
    })
    expect(await said("secrets", "ls", "--json")).not.toContain("hunter2")
    expect(await said("run", "--secret", "TOKEN", "sh", "-c", "echo $TOKEN")).toBe("hunter2\n")
    await said("secrets", "rm", "TOKEN")
    expect((await world.cli.run(["secrets", "rm", "TOKEN"])).code).toBe(3)
    expect((await world.cli.run(["secrets", "set", "TOKEN"], "")).code).toBe(2)
  })

  test("a memory is kept, found and forgotten", async () => {
    const id = (await said("memory", "add", "the", "staging", "database", "--tag", "web")).trim()
    expect(await said("memory", "search", "staging")).toContain(id)
    expect(await said("memory", "get", id)).toBe("the staging database\n")
    expect(await said("memory", "ls", "--tag", "web")).toContain(id)
    await said("memory", "rm", id)
    expect((await world.cli.run(["memory", "get", id])).code).toBe(3)
  })
}
