import { describe } from "vitest"
import { conformance } from "../conformance.ts"
import { ociSubject } from "./testing/subject.ts"

/** As where there is no btrfs, or as for somebody who may not mount one. */
describe("oci driver with plain folders", () => {
  conformance(ociSubject({ volume: { isPlain: true } }))
})
