import type { Kind } from "./cuts.ts"

/** A file of defences, and the tests that must miss each of them: the cheapest first, the next only when it misses nothing. */
export interface Target {
  readonly file: string
  readonly kinds: readonly Kind[]
  readonly tests: readonly string[]
}

const drivers = "packages/drivers/src"
const oci = `${drivers}/oci`
const egress = "packages/user-plane/src/egress"
const broker = "packages/user-plane/src/broker"
const vault = "packages/user-plane/src/vault"
const gateway = "packages/user-plane/src/gateway"
const control = "apps/control/src"

const conditions: readonly Kind[] = ["checks", "operands", "calls"]
const everything: readonly Kind[] = [...conditions, "returns", "filters"]
const gatewayTests = ["gateway", "strangers", "browsers", "hostile-requests", "tunnels", "built-in"].map(
  (name) => `${gateway}/${name}.live.test.ts`,
)
const proxyTests = ["http", "tunnel", "socks", "limits", "stream"].map((name) => `${egress}/proxy.${name}.test.ts`)
const brokerTests = ["refusal", "broker", "leases", "credentials", "errand", "mask", "git", "cut"].map(
  (name) => `${broker}/${name}.test.ts`,
)
const frontTest = (name: string): string => `${control}/gateway/${name}.test.ts`
const throughBoth = "e2e/gateway/through.live.test.ts"

export const targets: readonly Target[] = [
  {
    file: `${oci}/verify.ts`,
    kinds: [...everything, "musts"],
    tests: [`${oci}/verify.test.ts`, `${oci}/posture.live.test.ts`],
  },
  { file: `${oci}/spec/binds.ts`, kinds: everything, tests: [`${oci}/spec/binds.test.ts`] },
  {
    file: `${oci}/spec/sandbox-input.ts`,
    kinds: everything,
    tests: [`${oci}/spec/config-of.test.ts`, `${oci}/spec/binds.test.ts`, `${oci}/spec/config.test.ts`],
  },
  { file: `${oci}/spec/etc-files.ts`, kinds: everything, tests: [`${oci}/spec/binds.test.ts`] },
  { file: `${oci}/spec/config-of.ts`, kinds: everything, tests: [`${oci}/spec/config-of.test.ts`] },
  {
    file: `${drivers}/sandbox-spec.ts`,
    kinds: everything,
    tests: [`${drivers}/sandbox-spec.test.ts`, `${oci}/bad-input.live.test.ts`],
  },
  { file: `${oci}/network/rules.ts`, kinds: ["rules", "entries"], tests: [`${oci}/network/bridge.live.test.ts`] },

  {
    file: `${gateway}/answer-head.ts`,
    kinds: ["headers", "alternatives", "operands", "names"],
    tests: [`${gateway}/answer-head.test.ts`, ...gatewayTests],
  },
  { file: `${gateway}/set-cookie.ts`, kinds: everything, tests: [`${gateway}/answer-head.test.ts`] },
  {
    file: `${gateway}/request-head.ts`,
    kinds: ["alternatives", "operands"],
    tests: [`${gateway}/request-head.test.ts`, ...gatewayTests],
  },
  {
    file: `${gateway}/browser-guard.ts`,
    kinds: everything,
    tests: [`${gateway}/browser-guard.test.ts`, ...gatewayTests],
  },
  {
    file: `${gateway}/address.ts`,
    kinds: [...conditions, "entries"],
    tests: [`${gateway}/address.test.ts`, ...gatewayTests],
  },
  {
    file: `${gateway}/authority.ts`,
    kinds: everything,
    tests: [`${gateway}/authority.test.ts`, `${gateway}/address.test.ts`, ...gatewayTests],
  },
  { file: `${gateway}/admission.ts`, kinds: conditions, tests: [`${gateway}/admission.test.ts`, ...gatewayTests] },
  {
    file: `${gateway}/credentials.ts`,
    kinds: [...everything, "alternatives"],
    tests: [`${gateway}/credentials.test.ts`, ...gatewayTests],
  },
  { file: `${gateway}/grants.ts`, kinds: everything, tests: [`${gateway}/grants.test.ts`, ...gatewayTests] },
  { file: `${gateway}/one-time.ts`, kinds: everything, tests: [`${gateway}/one-time.test.ts`, ...gatewayTests] },
  {
    file: `${gateway}/visit.ts`,
    kinds: [...everything, "pieces"],
    tests: [`${gateway}/visit.test.ts`, ...gatewayTests],
  },
  { file: `${gateway}/tunnels.ts`, kinds: conditions, tests: [`${gateway}/tunnels.live.test.ts`, ...gatewayTests] },
  {
    file: `${gateway}/tunnel-api.ts`,
    kinds: [...conditions, "names"],
    tests: [`${gateway}/tunnels.live.test.ts`, ...gatewayTests],
  },
  {
    file: `${gateway}/notice.ts`,
    kinds: ["names", "pieces"],
    tests: [`${gateway}/notice.test.ts`, ...gatewayTests],
  },
  {
    file: `${gateway}/fault-answer.ts`,
    kinds: ["names"],
    tests: [`${gateway}/hostile-requests.live.test.ts`, ...gatewayTests],
  },
  { file: `${gateway}/gateway.ts`, kinds: [...conditions, "names"], tests: gatewayTests },
  {
    file: "packages/protocol/src/gateway-token.ts",
    kinds: conditions,
    tests: ["packages/protocol/src/gateway-token.test.ts"],
  },

  { file: `${control}/gateway/asked.ts`, kinds: everything, tests: [frontTest("asked"), throughBoth] },
  { file: `${control}/gateway/proof.ts`, kinds: everything, tests: [frontTest("proof"), throughBoth] },
  {
    file: `${control}/gateway/ownership.ts`,
    kinds: ["checks", "operands"],
    tests: [frontTest("ownership"), throughBoth],
  },
  {
    file: `${control}/gateway/relayed-head.ts`,
    kinds: ["operands", "filters", "entries"],
    tests: [frontTest("relayed-head"), frontTest("relay"), throughBoth],
  },
  {
    file: `${control}/gateway/front.ts`,
    kinds: [...conditions, "names"],
    tests: [...["front", "let-in", "unreadable"].map(frontTest), throughBoth],
  },
  {
    file: `${control}/guard.ts`,
    kinds: [...conditions, "headers", "names"],
    tests: [`${control}/guard.test.ts`, `${control}/page/page.test.ts`],
  },
  {
    file: `${control}/page/page.ts`,
    kinds: ["headers", "checks", "entries", "pieces"],
    tests: [`${control}/page/page.test.ts`],
  },
  { file: `${control}/docs-page.ts`, kinds: ["entries", "pieces"], tests: [`${control}/guard.test.ts`] },
  { file: `${control}/join-page.ts`, kinds: ["entries", "pieces"], tests: [`${control}/guard.test.ts`] },
  { file: `${control}/app.ts`, kinds: ["names"], tests: [`${control}/page/page.test.ts`, `${control}/guard.test.ts`] },
  {
    file: `${control}/login/cookie.ts`,
    kinds: [...conditions, "pieces"],
    tests: [`${control}/login/login.test.ts`, `${control}/guard.test.ts`],
  },
  {
    file: `${control}/login/identity.ts`,
    kinds: everything,
    tests: [`${control}/login/identity.test.ts`],
  },
  { file: `${control}/login/doorman.ts`, kinds: everything, tests: [`${control}/login/doorman.test.ts`] },
  {
    file: `${control}/login/oidc.ts`,
    kinds: conditions,
    tests: [`${control}/login/oidc.test.ts`],
  },
  {
    file: `${control}/gate.ts`,
    kinds: conditions,
    tests: [`${control}/gate.admission.test.ts`, `${control}/gate.test.ts`],
  },

  { file: `${egress}/address.ts`, kinds: ["entries", "checks", "operands"], tests: [`${egress}/address.test.ts`] },
  { file: `${egress}/host.ts`, kinds: conditions, tests: [`${egress}/host.test.ts`, `${egress}/proxy.http.test.ts`] },
  { file: `${egress}/policy.ts`, kinds: everything, tests: [`${egress}/policy.test.ts`, ...proxyTests] },
  { file: `${egress}/rule.ts`, kinds: conditions, tests: [`${egress}/policy.test.ts`] },
  { file: `${egress}/asked.ts`, kinds: everything, tests: proxyTests },
  {
    file: `${egress}/headers.ts`,
    kinds: ["operands", "filters", "entries"],
    tests: [`${egress}/headers.test.ts`, ...proxyTests],
  },
  { file: `${egress}/client-hello.ts`, kinds: everything, tests: [`${egress}/client-hello.test.ts`, ...proxyTests] },
  { file: `${egress}/tunnel.ts`, kinds: everything, tests: [`${egress}/proxy.tunnel.test.ts`, ...proxyTests] },
  { file: `${egress}/routes.ts`, kinds: everything, tests: [`${egress}/routes.test.ts`, ...proxyTests] },
  { file: `${egress}/http-front.ts`, kinds: everything, tests: proxyTests },
  { file: `${egress}/socks.ts`, kinds: everything, tests: [`${egress}/proxy.socks.test.ts`] },
  { file: `${egress}/proxy.ts`, kinds: everything, tests: proxyTests },
  { file: `${egress}/read-head.ts`, kinds: everything, tests: [`${egress}/read-head.test.ts`, ...proxyTests] },
  { file: `${egress}/http-forward.ts`, kinds: everything, tests: proxyTests },
  { file: `${egress}/http-upgrade.ts`, kinds: everything, tests: proxyTests },
  { file: `${egress}/session-egress.ts`, kinds: everything, tests: [`${egress}/session-egress.test.ts`] },
  { file: `${egress}/denials.ts`, kinds: everything, tests: [`${egress}/session-egress.test.ts`, ...proxyTests] },
  { file: `${egress}/dial.ts`, kinds: everything, tests: [`${egress}/dial.test.ts`, ...proxyTests] },
  { file: `${egress}/resolver.ts`, kinds: everything, tests: [`${egress}/resolver.test.ts`] },
  {
    file: `${egress}/ways-out.ts`,
    kinds: everything,
    tests: [`${egress}/ways-out.test.ts`, "packages/user-plane/src/sessions/reach.live.test.ts"],
  },
  { file: `${broker}/runs.ts`, kinds: everything, tests: [`${broker}/runs.test.ts`, `${broker}/cut.test.ts`] },
  { file: `${broker}/vault-keys.ts`, kinds: everything, tests: [`${broker}/vault-keys.test.ts`] },
  { file: `${broker}/broker-environment.ts`, kinds: everything, tests: brokerTests },
  { file: `${broker}/lease.ts`, kinds: everything, tests: [`${broker}/leases.test.ts`, ...brokerTests] },
  { file: `${broker}/refusal.ts`, kinds: everything, tests: brokerTests },
  { file: `${broker}/errand.ts`, kinds: everything, tests: [`${broker}/errand.test.ts`, ...brokerTests] },
  { file: `${broker}/relay.ts`, kinds: [...everything, "entries"], tests: brokerTests },
  { file: `${broker}/credentials.ts`, kinds: [...everything, "entries"], tests: brokerTests },
  { file: `${broker}/mask.ts`, kinds: everything, tests: [`${broker}/mask.test.ts`, ...brokerTests] },
  { file: `${broker}/leases.ts`, kinds: everything, tests: [`${broker}/leases.test.ts`, ...brokerTests] },
  { file: `${broker}/broker.ts`, kinds: everything, tests: brokerTests },
  { file: `${vault}/key-ring.ts`, kinds: [...conditions, "returns"], tests: [`${vault}/vault.test.ts`] },
  { file: `${vault}/vault.ts`, kinds: conditions, tests: [`${vault}/vault.test.ts`] },
]
