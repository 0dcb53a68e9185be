/** Where init forwards to the egress socket, inside. */
export const egressPort = 3128

/**
 * What makes ordinary programs use the proxy: for every command in a sandbox with the network `proxy`. Loopback is the sandbox's own,
 * and is not proxied. Names are resolved by the proxy: there is no DNS inside.
 */
export function proxyEnvironment(port: number = egressPort): Readonly<Record<string, string>> {
  return port === egressPort ? usual : environmentOf(port)
}

function environmentOf(port: number): Record<string, string> {
  const http = `http://127.0.0.1:${port}`
  const variables = {
    HTTP_PROXY: http,
    HTTPS_PROXY: http,
    // Not as SOCKS, although we speak it: Python's httpx, and so most clients of LLMs, refuse to start with that.
    ALL_PROXY: http,
    NO_PROXY: "localhost,127.0.0.1,::1",
  }
  const lower = Object.entries(variables).map(([name, value]) => [name.toLowerCase(), value])
  return { ...variables, ...(Object.fromEntries(lower) as Record<string, string>), ...unusual(http) }
}

/** For those that do not look at the usual ones: Node's fetch, Yarn, and what downloads Electron. git, npm, pip, apt, curl, cargo and go do. */
function unusual(http: string): Record<string, string> {
  return {
    NODE_USE_ENV_PROXY: "1",
    YARN_HTTP_PROXY: http,
    YARN_HTTPS_PROXY: http,
    ELECTRON_GET_USE_PROXY: "1",
  }
}

const usual = environmentOf(egressPort)
