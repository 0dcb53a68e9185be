import { count, oneOf, text } from "@warren/base/settings.ts"
import { homeSetting } from "@warren/protocol/places.ts"

export const settings = {
  home: homeSetting,
  port: count("WARREN_PORT", 7777, "The port of the API and the page.", { min: 1, max: 65_535 }),
  listen: text("WARREN_LISTEN", "127.0.0.1", "The address to listen on: this machine only unless said."),
  publicUrl: text(
    "WARREN_PUBLIC_URL",
    "",
    "Where people find Warren (`https://warren.example`); http://localhost and the port when unset. With https cookies need it.",
  ),
  tlsCertificate: text(
    "WARREN_TLS_CERT",
    "",
    "The file with the certificate and its chain (PEM): with it and its key Warren speaks HTTPS. Read again when it changes.",
  ),
  tlsKey: text("WARREN_TLS_KEY", "", "The file with the certificate's key (PEM)."),
  acmeFolder: text(
    "WARREN_ACME_FOLDER",
    "",
    "Where an ACME client puts its answers, for `/.well-known/acme-challenge/`; none are given when unset.",
  ),
  e2bDomain: text(
    "WARREN_E2B_DOMAIN",
    "",
    "Behind which sandboxes of E2B's clients have host names (`<port>-<id>.<domain>`, and `api.<domain>`), with the port if it is not 443; none when unset.",
  ),
  gatewayDomain: text(
    "WARREN_GATEWAY_DOMAIN",
    "warren.localhost",
    "Previews are at `<name>-<session>.<domain>`; empty where no such names lead here. The runners' has to be the same.",
  ),
  users: oneOf(
    "WARREN_USERS",
    "single",
    ["single", "many"],
    "`single`: whoever started it owns it, and their token lies in a file. `many`: each user has a Linux account and a runner.",
  ),
  runners: text(
    "WARREN_RUNNERS",
    "/run/warren/{user}/control.sock",
    "With many users: where a user's runner listens unless an admin has said otherwise.",
  ),
  database: text(
    "WARREN_DATABASE",
    "",
    "`postgres://…` (a socket's folder as `?host=`), or the path of a SQLite file; one below WARREN_HOME when unset.",
  ),
  requestsPerMinute: count("WARREN_REQUESTS_PER_MINUTE", 600_000, "Of a user whose quota says nothing else.", {
    min: 1,
    max: 1_000_000_000,
  }),
  auditMax: count("WARREN_AUDIT_MAX", 1_000_000, "Entries kept in the audit log; 0: all.", {
    min: 0,
    max: 1_000_000_000,
  }),
  oidcIssuer: text("WARREN_OIDC_ISSUER", "", "The identity provider people sign in with; none when unset."),
  oidcClient: text("WARREN_OIDC_CLIENT", "warren", "What Warren is called there."),
  oidcSecretFile: text("WARREN_OIDC_SECRET_FILE", "", "The file with its secret; a public client when unset."),
  oidcName: text("WARREN_OIDC_NAME", "preferred_username", "The claim with the user's name."),
  otlp: text("OTEL_EXPORTER_OTLP_ENDPOINT", "", "Where traces go (OTLP over HTTP); nowhere when unset."),
  drainS: count("WARREN_DRAIN_S", 5, "How long requests may take to end when it is told to stop, in seconds.", {
    min: 0,
    max: 3600,
  }),
}
