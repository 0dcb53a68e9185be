import { describe, expect, it } from "vitest"
import { newId } from "@warren/base/id.ts"
import { defaultLimits, type SandboxSpec } from "../../sandbox-spec.ts"
import { ociConfig } from "./config.ts"
import { hardLimit, thisMachine } from "./machine.ts"

const spec: SandboxSpec = {
  id: newId("sbx"),
  image: { layers: ["/layer"] },
  profile: "strict",
  limits: defaultLimits,
  hostname: "box",
  network: { mode: "none" },
  isRootReadOnly: true,
  mounts: [],
  dns: [],
}

describe("the config of a sandbox on this machine", () => {
  it("has the filter in the form its runtime reads", () => {
    expect(Object.keys(ociConfig(spec, "crun").annotations)).toEqual(["run.oci.seccomp_bpf_data"])
    expect(ociConfig(spec, "runc")).toMatchObject({ annotations: {}, linux: { seccomp: { defaultErrnoRet: 38 } } })
  })

  it("fits this machine with the default limits, and not with more memory than it has", () => {
    const memoryBytes = 2 ** 45
    expect(() => ociConfig({ ...spec, limits: { ...defaultLimits, memoryBytes } }, "crun")).toThrow(/memoryBytes/)
  })
})

describe("this machine", () => {
  it("is read from the kernel", () => {
    const { openFilesMax, processesMax, oomScoreAdj } = thisMachine()
    expect(openFilesMax).toBeGreaterThan(63)
    expect(processesMax).toBeGreaterThan(0)
    expect(oomScoreAdj).toBeGreaterThanOrEqual(-1000)
  })

  it("understands what the kernel writes", () => {
    const limits =
      "Max processes             unlimited            unlimited            processes\nMax open files            1024                 4096                 files\n"
    expect(hardLimit(limits, "Max open files")).toBe(4096)
    expect(hardLimit(limits, "Max processes")).toBe(Number.MAX_SAFE_INTEGER)
    expect(hardLimit(limits, "Max anything")).toBe(0)
  })
})
