import { mkdir, readdir, writeFile } from "node:fs/promises"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect, test } from "vitest"
import { copyAptSettings } from "./apt-settings.ts"

test("where packages come from is copied, and no password, no proxy and no program to be run", async () => {
  await using folder = await TempFolder.make()
  const files = {
    "sources.list": "deb http://deb.debian.org/debian bookworm main",
    "sources.list.d/debian.sources": "Types: deb\nURIs: https://deb.debian.org/debian",
    "sources.list.d/company.list": "deb https://anna:s3cret@packages.example/ stable main",
    "sources.list.d/old.list.save": "deb http://old.example/ a b",
    "apt.conf.d/50ok": 'APT::Install-Recommends "false";',
    "apt.conf.d/60proxy": 'Acquire::http::Proxy "http://10.0.0.1:3128";',
    "apt.conf.d/70run": 'DPkg::Post-Invoke {"/usr/bin/tell-the-host";};',
    "auth.conf": "machine packages.example login anna password s3cret",
    "auth.conf.d/more": "machine packages.example login anna password s3cret",
  }
  for (const name of ["sources.list.d", "apt.conf.d", "auth.conf.d"])
    await mkdir(folder.at("from", name), { recursive: true })
  for (const [name, text] of Object.entries(files)) await writeFile(folder.at("from", name), text)
  await copyAptSettings(folder.at("to"), folder.at("from"))
  const copied = await readdir(folder.at("to"), { recursive: true })
  expect(copied.filter((name) => !name.endsWith(".d")).toSorted()).toEqual([
    "apt.conf.d/50ok",
    "sources.list",
    "sources.list.d/debian.sources",
  ])
  await copyAptSettings(folder.at("nothing"), folder.at("no-such-folder"))
})
