/** Where init forwards to the egress socket, inside. */
export const egressPort = 3128

/** What makes ordinary programs use the proxy. Loopback is the sandbox's own, and is not proxied. */
export function proxyEnvironment(port: number = egressPort): Record<string, string> {
  const http = `http://127.0.0.1:${port}`
  const variables = {
    HTTP_PROXY: http,
    HTTPS_PROXY: http,
    // Names are resolved by the proxy (socks5h): there is no DNS inside.
    ALL_PROXY: `socks5h://127.0.0.1:${port}`,
    NO_PROXY: "localhost,127.0.0.1,::1",
  }
  const lower = Object.entries(variables).map(([name, value]) => [name.toLowerCase(), value])
  return { ...variables, ...(Object.fromEntries(lower) as Record<string, string>) }
}
