import { Fault } from "@warren/base/fault.ts"
import { digestOf, type Digest } from "./digest.ts"

/** Where an image is: `docker.io/library/debian:12`. */
export interface Reference {
  readonly registry: string
  readonly repository: string
  readonly tag: string
  readonly digest?: Digest
}

const registryPattern = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::[0-9]{1,5})?$/i
const repositoryPattern = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/
const tagPattern = /^[\w][\w.-]{0,127}$/

/** Reads a reference with what people leave out: Docker's registry, its `library`, `latest`. */
export function readReference(text: string): Reference {
  const [named = "", digest, ...more] = text.split("@")
  const slash = named.indexOf("/")
  const first = slash < 0 ? "" : named.slice(0, slash)
  const hasRegistry = first.includes(".") || first.includes(":") || first === "localhost"
  const registry = hasRegistry ? first : "docker.io"
  const rest = hasRegistry ? named.slice(slash + 1) : named
  const colon = rest.lastIndexOf(":")
  const path = colon < 0 ? rest : rest.slice(0, colon)
  const tag = colon < 0 ? "latest" : rest.slice(colon + 1)
  const repository = registry === "docker.io" && !path.includes("/") ? `library/${path}` : path
  const isFine =
    more.length === 0 &&
    text.length <= 512 &&
    registryPattern.test(registry) &&
    repositoryPattern.test(repository) &&
    tagPattern.test(tag)
  if (!isFine) throw new Fault("invalid", `${JSON.stringify(text.slice(0, 200))} is not the name of an image`)
  return { registry, repository, tag, ...(digest === undefined ? {} : { digest: digestOf(digest) }) }
}

/** The whole name, by which it is kept. */
export function nameOf({ registry, repository, tag, digest }: Reference): string {
  return `${registry}/${repository}${digest === undefined ? `:${tag}` : `@${digest}`}`
}
