/**
 * Where Warren's own page is, too, on one's own machine: at the domain its previews are below. They are then of the same site as it is,
 * and browsers that keep sites apart let it show them.
 */
export function pageAt(publicUrl: URL, domain: string): URL | undefined {
  if (publicUrl.hostname !== "localhost" || !domain.endsWith(".localhost")) return undefined
  const url = new URL(publicUrl)
  url.hostname = domain
  return url
}
