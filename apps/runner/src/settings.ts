import { count, oneOf, text } from "@warren/base/settings.ts"
import { homeSetting } from "@warren/protocol/places.ts"

export const settings = {
  home: homeSetting,
  driver: oneOf(
    "WARREN_DRIVER",
    "oci",
    ["oci", "process"],
    "How sandboxes are made unless a session asks for another way.",
  ),
  image: text("WARREN_IMAGE", "host", "The image of sessions that ask for none."),
  sessionsMax: count("WARREN_SESSIONS_MAX", 2_000, "Sessions that are not over; one more is refused.", {
    min: 1,
    max: 100_000,
  }),
  poolMb: count("WARREN_POOL_MB", 256, "What sandboxes that wait ready may cost in memory, in MiB; 0: none wait.", {
    min: 0,
    max: 1_000_000,
  }),
  poolLeast: count("WARREN_POOL_LEAST", 4, "How many wait at least for sessions that ask for nothing special.", {
    min: 0,
    max: 10_000,
  }),
  cgroupParent: text(
    "WARREN_CGROUP",
    "",
    "Where not run by root: a cgroup made for this user, as a path below every hierarchy.",
  ),
  anthropicUrl: text(
    "WARREN_ANTHROPIC_URL",
    "https://api.anthropic.com",
    "Where the key broker sends what is for Anthropic.",
  ),
  openaiUrl: text("WARREN_OPENAI_URL", "https://api.openai.com", "Where the key broker sends what is for OpenAI."),
  gitUrls: text(
    "WARREN_GIT_URLS",
    "",
    "Where the key broker sends what is for a git host, when not there: `host=url`, separated by spaces.",
  ),
  forgeUrls: text(
    "WARREN_FORGE_URLS",
    "",
    "Where pull requests for a git host are asked for: the base of GitHub's REST as `host=url`, separated by spaces.",
  ),
  transcribeCommand: text(
    "WARREN_TRANSCRIBE_COMMAND",
    "",
    "A program, with its arguments, that prints what is said in the file it is given last.",
  ),
  transcribeUrl: text(
    "WARREN_TRANSCRIBE_URL",
    "",
    "An OpenAI-compatible transcriptions endpoint, where there is no such program.",
  ),
  transcribeModel: text("WARREN_TRANSCRIBE_MODEL", "whisper-1", "The model it is asked for."),
  embeddingsUrl: text(
    "WARREN_EMBEDDINGS_URL",
    "",
    "An OpenAI-compatible embeddings endpoint; memories are then also found by meaning.",
  ),
  embeddingsModel: text("WARREN_EMBEDDINGS_MODEL", "text-embedding-3-small", "The model asked for embeddings."),
  embeddingsDimensions: count("WARREN_EMBEDDINGS_DIMENSIONS", 1536, "How long its vectors are.", { min: 1, max: 4096 }),
  controlSocket: text(
    "WARREN_CONTROL_SOCKET",
    "",
    "Where the control plane finds this runner; `ipc/control.sock` in the user's folder when unset.",
  ),
  controlGroup: count(
    "WARREN_CONTROL_GROUP",
    0,
    "The number of the group that may connect there: the control plane's; 0: the user's own.",
    { min: 0, max: 2 ** 32 - 2 },
  ),
  gatewaySocket: text(
    "WARREN_GATEWAY_SOCKET",
    "",
    "Where previews are reached; `ipc/gateway.sock` in the user's folder when unset.",
  ),
  gatewayDomain: text(
    "WARREN_GATEWAY_DOMAIN",
    "warren.localhost",
    "Previews are at `<name>-<session>.<domain>`; empty where no such names lead here: they then share one, in sandboxed pages.",
  ),
  gatewayHosts: text(
    "WARREN_GATEWAY_HOSTS",
    "localhost 127.0.0.1 [::1]",
    "Host names, separated by spaces, under which the gateway's own paths are, besides the domain.",
  ),
  controlKey: text(
    "WARREN_CONTROL_KEY",
    "",
    "The file with the control plane's public key; the one it writes below WARREN_HOME when unset.",
  ),
  forwarded: text(
    "WARREN_FORWARDED",
    "",
    "A file with variables for agents and sandboxes; `warren start` gives a pipe.",
  ),
  programs: text("WARREN_PROGRAMS", "", "The folder with Warren's programs; the one this file is in when unset."),
}
