import { existsSync } from "node:fs"
import { chmod, writeFile } from "node:fs/promises"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { bootstrapFrame, readBootstrap, readBootstrapFile, type Bootstrap } from "./bootstrap.ts"

const bootstrap: Bootstrap = {
  userId: "alice",
  session: "ses_0123456789abcdefghjk",
  driver: "oci",
  workspaceRoot: "/workspace",
  sidecarEndpoint: { transport: "unix", address: "/run/warren/init.sock" },
  runtimePolicy: {
    mounts: [{ from: "/a", to: "/workspace", isReadOnly: false }],
    resources: { cpus: 1, memoryBytes: 2 ** 29, pidsMax: 512, openFilesMax: 4096, diskBytes: 0 },
    credentialRefs: ["llm:anthropic"],
  },
  startupStatus: {
    sidecarAvailable: true,
    shellAvailable: false,
    browserAvailable: false,
    degradedReasons: [{ code: "insecure_process_tier", detail: "not a wall" }],
  },
  hub: { url: "unix:/run/warren/hub.sock", token: "t" },
}

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

describe("bootstrap", () => {
  test("arrives whole as a frame, however it is cut", async () => {
    const frame = bootstrapFrame(bootstrap)
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: frame.length }), async (size) => {
        expect(await readBootstrap(pieces(frame, size))).toEqual(bootstrap)
      }),
    )
  })

  test("that ends too soon or says something else is refused by name", async () => {
    const frame = bootstrapFrame(bootstrap)
    await expect(readBootstrap(pieces(frame.subarray(0, -1), 10))).rejects.toMatchObject({ code: "invalid" })
    const wrong = bootstrapFrame({ ...bootstrap, driver: 5 } as unknown as Bootstrap)
    await expect(readBootstrap(pieces(wrong, 100))).rejects.toThrow("driver")
  })

  test("in a file is read once, and only when nobody else can", async () => {
    await using folder = await TempFolder.make()
    const path = folder.at("bootstrap.json")
    await writeFile(path, JSON.stringify(bootstrap), { mode: 0o644 })
    await expect(readBootstrapFile(path)).rejects.toMatchObject({ code: "forbidden" })
    expect(existsSync(path)).toBe(true)
    await chmod(path, 0o600)
    expect(await readBootstrapFile(path)).toEqual(bootstrap)
    expect(existsSync(path)).toBe(false)
  })
})
