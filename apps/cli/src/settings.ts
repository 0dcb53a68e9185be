import { count, text } from "@warren/base/settings.ts"
import { homeSetting } from "@warren/protocol/places.ts"

export const settings = {
  home: homeSetting,
  port: count("WARREN_PORT", 7777, "The loopback port of the API and the page.", { min: 1, max: 65_535 }),
  tlsCertificate: text("WARREN_TLS_CERT", "", "The certificate the control plane shows; plain HTTP when unset."),
  tlsCa: text(
    "WARREN_TLS_CA",
    "",
    "The authority that has signed it (PEM): for who cannot read the certificate itself, or does not want to.",
  ),
  publicUrl: text("WARREN_PUBLIC_URL", "", "Where people find Warren; with WARREN_TLS_CA the name in the certificate."),
  url: text("WARREN_URL", "", "For `warren mcp` and `warren attach`: a Warren somewhere else to ask."),
  token: text("WARREN_TOKEN", "", "Who asks it."),
  config: text("WARREN_CONFIG", "", "The `runner.toml` to go by; `$WARREN_HOME/runner.toml` when unset."),
}
