import { describe } from "vitest"
import { conformance } from "../conformance.ts"
import { ociSubject } from "./testing/subject.ts"

describe("oci driver", () => conformance(ociSubject()))
