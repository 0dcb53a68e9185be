import type { Abilities } from "../driver.ts"

export interface Circumstances {
  /** It runs with the uid of whoever runs Warren, because nobody may give it another. */
  readonly isPerson: boolean
  /** Why there are no cgroups; undefined when there are. */
  readonly noCgroups: string | undefined
}

/** The name by which everybody can tell this driver's sandboxes from real ones. */
export const insecureTier = "insecure_process_tier"

const always = {
  [insecureTier]: "it limits files and network, and is not a security boundary against a determined attacker",
  rootInside: "there is no user namespace: root inside would be root outside",
  snapshot: "its files are spread over the host's own folders and cannot be frozen as one",
  diskLimit: "its folders are plain folders of the host's disk",
  namespaces:
    "it runs in the host's namespaces: the host's process list, host name, mounts and paths are seen, /workspace is a folder elsewhere ($WORKSPACE)",
  mounts: "there is no mount namespace to mount anything in",
  network: "it shares the host's network, where nothing but a filter without any socket keeps it from everything",
  ports: "it shares the host's network, so it may open no socket at all",
  shellTools: "a shell for an agent needs a stronger wall than Landlock alone",
  browserTools: "a browser needs sockets and shared memory, and has neither here",
}

const asPerson = {
  terminals: "terminals of the host that belong to this user would be open to it",
  boundingSet: "only root can empty the capability bounding set; no-new-privs makes it harmless",
  modes: "chmod by path is refused: Landlock does not cover it, and it would reach every file of this user",
}

export function abilitiesIn({ isPerson, noCgroups }: Circumstances): Abilities {
  const reasons = {
    ...always,
    ...(isPerson ? asPerson : {}),
    ...(noCgroups === undefined ? {} : { limits: noCgroups, pause: noCgroups }),
  }
  return { pause: noCgroups === undefined, rootInside: false, diskLimit: false, reasons }
}

/** What a reader of the posture must know, the worst first. */
export function degradedIn({ isPerson, noCgroups }: Circumstances): string[] {
  return [
    insecureTier,
    always[insecureTier],
    `${always.namespaces}; names, sizes and times of files outside can be seen, their contents cannot`,
    ...(isPerson ? ["it has the uid of whoever runs Warren", asPerson.boundingSet] : []),
    ...(noCgroups === undefined ? [] : [`memory and cpu are not limited: ${noCgroups}`]),
  ]
}
