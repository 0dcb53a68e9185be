import { describe } from "vitest"
import { conformance } from "../conformance.ts"
import { processSubject } from "./testing/subject.ts"

describe("process driver", () => {
  conformance(processSubject())
})
