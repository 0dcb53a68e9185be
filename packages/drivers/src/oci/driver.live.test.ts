import { describe, expect, test } from "vitest"
import { conformance } from "../conformance.ts"
import { ociSubject } from "./testing/subject.ts"

describe("oci driver", () => {
  conformance(ociSubject())
})

describe("oci driver with runc", () => {
  conformance(ociSubject({ runtime: "runc" }))
})

const gvisor = ociSubject({ runtime: "runsc" })

test("says why runsc cannot be used", async () => {
  await expect(gvisor.open()).rejects.toMatchObject({ code: "unsupported" })
})
