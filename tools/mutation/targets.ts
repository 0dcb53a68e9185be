import type { Kind } from "./cuts.ts"

/** A file of defences, and the cheapest tests that must miss each of them. */
export interface Target {
  readonly file: string
  readonly kinds: readonly Kind[]
  readonly tests: readonly string[]
  /** What may be taken out without anybody noticing, and why. */
  readonly held?: Readonly<Record<string, string>>
}

const egress = "packages/user-plane/src/egress"
const gateway = "packages/user-plane/src/gateway"
const oci = "packages/drivers/src/oci"

export const targets: readonly Target[] = [
  { file: `${oci}/verify.ts`, kinds: ["musts"], tests: [`${oci}/posture.live.test.ts`] },
  { file: `${oci}/spec/binds.ts`, kinds: ["checks"], tests: [`${oci}/spec/binds.test.ts`] },
  {
    file: `${oci}/spec/sandbox-input.ts`,
    kinds: ["checks"],
    tests: [`${oci}/spec/config-of.test.ts`, `${oci}/spec/binds.test.ts`, `${oci}/spec/config.test.ts`],
  },
  {
    file: "packages/drivers/src/sandbox-spec.ts",
    kinds: ["checks"],
    tests: [`${oci}/bad-input.live.test.ts`],
    held: {
      'if (!hostnamePattern.test(spec.hostname)) throw new Fault("invalid", `"${spec.hostname}" is not a host name`)':
        "refused again when its config is made",
    },
  },
  {
    file: `${gateway}/answer-head.ts`,
    kinds: ["headers", "alternatives"],
    tests: [`${gateway}/answer-head.test.ts`, `${gateway}/hostile.live.test.ts`],
  },
  { file: `${gateway}/request-head.ts`, kinds: ["alternatives"], tests: [`${gateway}/request-head.test.ts`] },
  {
    file: `${gateway}/browser-guard.ts`,
    kinds: ["checks"],
    tests: [`${gateway}/hostile.live.test.ts`, `${gateway}/gateway.live.test.ts`],
  },
  {
    file: `${gateway}/address.ts`,
    kinds: ["checks"],
    tests: [`${gateway}/address.test.ts`, `${gateway}/hostile.live.test.ts`],
  },
  {
    file: `${gateway}/admission.ts`,
    kinds: ["checks"],
    tests: [`${gateway}/gateway.live.test.ts`, `${gateway}/hostile.live.test.ts`, `${gateway}/tunnels.live.test.ts`],
  },
  {
    file: `${gateway}/credentials.ts`,
    kinds: ["checks", "alternatives"],
    tests: [`${gateway}/gateway.live.test.ts`, `${gateway}/hostile.live.test.ts`],
  },
  { file: `${egress}/address.ts`, kinds: ["entries", "checks"], tests: [`${egress}/address.test.ts`] },
  { file: `${egress}/host.ts`, kinds: ["checks"], tests: [`${egress}/host.test.ts`, `${egress}/proxy.http.test.ts`] },
  {
    file: `${egress}/policy.ts`,
    kinds: ["checks"],
    tests: [`${egress}/policy.test.ts`, `${egress}/proxy.tunnel.test.ts`, `${egress}/proxy.http.test.ts`],
    held: {
      "if (text.length > nameCharsMax + 1) throw badHost(text)":
        "a longer name is refused after it was read; this saves the reading",
      'if (ascii === "") throw badHost(text)': "no name at all is refused by the shape of names as well",
    },
  },
  { file: `${egress}/rule.ts`, kinds: ["checks"], tests: [`${egress}/policy.test.ts`] },
  {
    file: "apps/control/src/guard.ts",
    kinds: ["headers", "checks"],
    tests: ["apps/control/src/guard.test.ts", "apps/control/src/page/page.test.ts"],
  },
  {
    file: "apps/control/src/page/page.ts",
    kinds: ["headers", "checks"],
    tests: ["apps/control/src/page/page.test.ts"],
  },
  {
    file: `${oci}/network/rules.ts`,
    kinds: ["rules", "entries"],
    tests: [`${oci}/network/bridge.live.test.ts`],
  },
]
