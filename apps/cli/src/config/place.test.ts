import { writeFile } from "node:fs/promises"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { describe, expect, test } from "vitest"
import { forwardedOf } from "./forwarding.ts"
import { findPlace } from "./place.ts"

const nothing = { config: undefined, user: undefined }
const two =
  'workspace_root = "/srv/w"\ndefault_driver = "process"\n[users.alice]\n[users.bob]\ndriver = "oci"\nport = 7001\n'

async function configured(folder: TempFolder, text: string): Promise<string> {
  await writeFile(folder.at("runner.toml"), text)
  return folder.at("runner.toml")
}

describe("whose Warren is meant", () => {
  test("without a file: the one of WARREN_HOME", async () => {
    await using folder = await TempFolder.make()
    expect(await findPlace(nothing, { WARREN_HOME: folder.path, WARREN_PORT: "7100" })).toMatchObject({
      home: folder.path,
      port: 7100,
    })
    await expect(findPlace({ ...nothing, user: "alice" }, { WARREN_HOME: folder.path })).rejects.toMatchObject({
      code: "not_found",
    })
  })

  test("one user is chosen without being asked for, of several one has to be named", async () => {
    await using folder = await TempFolder.make()
    const one = await configured(folder, 'workspace_root = "/srv/w"\n[users.alice]\n')
    expect((await findPlace({ ...nothing, config: one }, {})).home).toBe("/srv/w/alice")
    const several = await configured(folder, two)
    await expect(findPlace({ ...nothing, config: several }, {})).rejects.toMatchObject({
      code: "invalid",
      hint: "say which: --user alice | bob",
    })
    expect(await findPlace({ config: several, user: "bob" }, {})).toMatchObject({
      home: "/srv/w/bob",
      driver: "oci",
      port: 7001,
    })
    expect(await findPlace({ config: several, user: "alice" }, {})).toMatchObject({ driver: "process", port: 7777 })
    await expect(findPlace({ config: several, user: "eve" }, {})).rejects.toMatchObject({ code: "not_found" })
  })

  test("the file is found in WARREN_HOME, by WARREN_CONFIG and by --config; one that was named must be there", async () => {
    await using folder = await TempFolder.make()
    const file = await configured(folder, "port = 7200\n")
    expect((await findPlace(nothing, { WARREN_HOME: folder.path })).port).toBe(7200)
    expect((await findPlace(nothing, { WARREN_HOME: "/nowhere", WARREN_CONFIG: file })).port).toBe(7200)
    expect((await findPlace(nothing, { WARREN_HOME: folder.path, WARREN_PORT: "7300" })).port).toBe(7300)
    await expect(findPlace({ ...nothing, config: folder.at("other.toml") }, {})).rejects.toMatchObject({
      code: "not_found",
    })
  })
})

describe("variables a runner is started with", () => {
  const place = { home: "/h", port: 1, agentKeys: ["OPENAI_API_KEY", "UNSET"], shellKeys: ["NPM_TOKEN"] }
  const env = { OPENAI_API_KEY: "sk", NPM_TOKEN: "npm", PATH: "/bin", TZ: "UTC" }

  test("each goes to one side only, and nothing goes that nobody named", async () => {
    const given = {
      env: [{ name: "EXTRA", value: "1" }, { name: "SHELL_DEBUG", value: "2" }, { name: "TZ" }],
      envFile: [],
    }
    expect(await forwardedOf(place, given, env)).toEqual({
      agent: { OPENAI_API_KEY: "sk", EXTRA: "1", TZ: "UTC" },
      shell: { NPM_TOKEN: "npm", DEBUG: "2" },
    })
  })

  test("files are read, and the command line goes before them", async () => {
    await using folder = await TempFolder.make()
    await writeFile(folder.at("env"), "# keys\nA=1\nexport B = 'two words'\nSHELL_C=\"3\"\n\nD=a=b#c\nTZ\nE=\r\n")
    const given = { env: [{ name: "A", value: "over" }], envFile: [folder.at("env")] }
    expect(await forwardedOf({ ...place, agentKeys: [], shellKeys: [] }, given, env)).toEqual({
      agent: { A: "over", B: "two words", D: "a=b#c", TZ: "UTC", E: "" },
      shell: { C: "3" },
    })
  })

  test("a file that is not there or makes no sense is named with its line", async () => {
    await using folder = await TempFolder.make()
    await writeFile(folder.at("env"), "A=1\nnot a variable=2\n")
    const from = (file: string) => forwardedOf(place, { env: [], envFile: [folder.at(file)] }, env)
    await expect(from("none")).rejects.toMatchObject({ code: "not_found" })
    await expect(from("env")).rejects.toThrow(/env:2: not NAME=VALUE/)
  })
})
