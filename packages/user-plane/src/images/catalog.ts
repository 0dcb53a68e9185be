import type { Database } from "@warren/base/sqlite/database.ts"
import type { Migration } from "@warren/base/sqlite/migrations.ts"
import type { Row } from "@warren/base/sqlite/value.ts"
import type { SandboxId } from "@warren/drivers/sandbox-spec.ts"
import { digestOf, type Digest } from "./digest.ts"

export interface LayerRecord {
  readonly digest: Digest
  readonly entries: number
  readonly bytes: number
  readonly opaque: readonly string[]
  /** Where in its folder the layer is, when it came with what was around it. */
  readonly inside: string
}

export interface ImageRecord {
  /** The digest of its manifest. */
  readonly id: Digest
  readonly manifest: string
  readonly config: string
  /** The top one first. */
  readonly layers: readonly Digest[]
  readonly madeAt: number
}

export const migrations: readonly Migration[] = [
  {
    name: "images",
    sql: `
      CREATE TABLE layers (
        digest TEXT PRIMARY KEY, entries INTEGER NOT NULL, bytes INTEGER NOT NULL, opaque TEXT NOT NULL) STRICT;
      CREATE TABLE images (
        id TEXT PRIMARY KEY, manifest TEXT NOT NULL, config TEXT NOT NULL, made_at INTEGER NOT NULL) STRICT;
      CREATE TABLE image_layers (
        image TEXT NOT NULL REFERENCES images (id) ON DELETE CASCADE, position INTEGER NOT NULL,
        layer TEXT NOT NULL REFERENCES layers (digest), PRIMARY KEY (image, position)) STRICT;
      CREATE INDEX image_layers_layer ON image_layers (layer);
      CREATE TABLE names (name TEXT PRIMARY KEY, image TEXT NOT NULL REFERENCES images (id)) STRICT;
      CREATE INDEX names_image ON names (image);
      CREATE TABLE holds (
        holder TEXT NOT NULL, image TEXT NOT NULL REFERENCES images (id), PRIMARY KEY (holder, image)) STRICT;
      CREATE INDEX holds_image ON holds (image);
      CREATE TABLE steps (
        key TEXT PRIMARY KEY, layer TEXT NOT NULL REFERENCES layers (digest), used_at INTEGER NOT NULL) STRICT;
      CREATE INDEX steps_layer ON steps (layer);`,
  },
  {
    name: "layers of sandboxes, sandboxes of builds",
    sql: `
      ALTER TABLE layers ADD COLUMN inside TEXT NOT NULL DEFAULT '';
      CREATE TABLE workers (sandbox TEXT PRIMARY KEY) STRICT;`,
  },
]

/** What there is, by name and by digest, and who needs it. The foreign keys refuse to forget what somebody needs. */
export class Catalog {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  addLayer({ digest, entries, bytes, opaque, inside }: LayerRecord): void {
    const row = [digest, entries, bytes, JSON.stringify(opaque), inside]
    this.#database.run("INSERT INTO layers (digest, entries, bytes, opaque, inside) VALUES (?, ?, ?, ?, ?)", row)
  }

  layer(digest: Digest): LayerRecord | undefined {
    return this.#database.get("SELECT * FROM layers WHERE digest = ?", [digest], layerOf)
  }

  layers(): LayerRecord[] {
    return this.#database.all("SELECT * FROM layers", [], layerOf)
  }

  /** An image with its names, all or nothing. A name moves; what it named before stays until it is collected. */
  addImage(image: ImageRecord, names: readonly string[]): void {
    this.#database.transaction(() => {
      const { id, manifest, config, madeAt, layers } = image
      const isNew = this.#database.run(
        "INSERT OR IGNORE INTO images (id, manifest, config, made_at) VALUES (?, ?, ?, ?)",
        [id, manifest, config, madeAt],
      )
      if (isNew > 0) {
        const insert = "INSERT INTO image_layers (image, position, layer) VALUES (?, ?, ?)"
        layers.forEach((layer, position) => this.#database.run(insert, [id, position, layer]))
      }
      for (const name of names) this.#name(name, id)
    })
  }

  image(id: Digest): ImageRecord | undefined {
    return this.#database.get("SELECT * FROM images WHERE id = ?", [id], (row) => this.#imageOf(row))
  }

  images(): ImageRecord[] {
    return this.#database.all("SELECT * FROM images ORDER BY made_at, id", [], (row) => this.#imageOf(row))
  }

  named(name: string): Digest | undefined {
    return this.#database.get("SELECT image FROM names WHERE name = ?", [name], (row) => digestOf(text(row["image"])))
  }

  names(id: Digest): string[] {
    return this.#database.all("SELECT name FROM names WHERE image = ? ORDER BY name", [id], (row) => text(row["name"]))
  }

  name(name: string, id: Digest): void {
    this.#name(name, id)
  }

  unname(name: string): boolean {
    return this.#database.run("DELETE FROM names WHERE name = ?", [name]) > 0
  }

  hold(id: Digest, holder: string): void {
    this.#database.run("INSERT OR IGNORE INTO holds (holder, image) VALUES (?, ?)", [holder, id])
  }

  release(holder: string): void {
    // Looked for first: most who let go hold nothing of ours, and a write waits for the disk.
    const holds = this.#database.get("SELECT 1 AS one FROM holds WHERE holder = ?", [holder], () => true)
    if (holds) this.#database.run("DELETE FROM holds WHERE holder = ?", [holder])
  }

  holders(id: Digest): string[] {
    return this.#database.all("SELECT holder FROM holds WHERE image = ? ORDER BY holder", [id], (row) =>
      text(row["holder"]),
    )
  }

  /** Everybody who holds something and is not among these lets go. */
  releaseOthers(holders: ReadonlySet<string>): string[] {
    return this.#database.transaction(() => {
      const all = this.#database.all("SELECT DISTINCT holder FROM holds", [], (row) => text(row["holder"]))
      const gone = all.filter((holder) => !holders.has(holder))
      for (const holder of gone) this.release(holder)
      return gone
    })
  }

  /** A sandbox that is there only to make something, written down before it is made. */
  addWorker(sandbox: SandboxId): void {
    this.#database.run("INSERT INTO workers (sandbox) VALUES (?)", [sandbox])
  }

  workers(): SandboxId[] {
    return this.#database.all("SELECT sandbox FROM workers", [], (row) => text(row["sandbox"]) as SandboxId)
  }

  removeWorker(sandbox: SandboxId): void {
    this.#database.run("DELETE FROM workers WHERE sandbox = ?", [sandbox])
  }

  /** What a step of a recipe made when it was last taken. */
  step(key: string, now: number): Digest | undefined {
    const sql = "UPDATE steps SET used_at = ? WHERE key = ? RETURNING layer"
    return this.#database.get(sql, [now, key], (row) => digestOf(text(row["layer"])))
  }

  addStep(key: string, layer: Digest, now: number): void {
    this.#database.run("INSERT OR REPLACE INTO steps (key, layer, used_at) VALUES (?, ?, ?)", [key, layer, now])
  }

  /** Forgets images without a name or a holder, steps nobody took since `stepsBefore`, and then layers nobody needs. */
  forget(isPinned: (digest: Digest) => boolean, stepsBefore: number): { images: Digest[]; layers: Digest[] } {
    return this.#database.transaction(() => {
      const images = this.#database
        .all(
          `SELECT id FROM images WHERE id NOT IN (SELECT image FROM names) AND id NOT IN (SELECT image FROM holds)`,
          [],
          (row) => digestOf(text(row["id"])),
        )
        .filter((id) => !isPinned(id))
      for (const id of images) this.#database.run("DELETE FROM images WHERE id = ?", [id])
      this.#database.run("DELETE FROM steps WHERE used_at < ?", [stepsBefore])
      const layers = this.#database
        .all(
          `SELECT digest FROM layers
            WHERE digest NOT IN (SELECT layer FROM image_layers) AND digest NOT IN (SELECT layer FROM steps)`,
          [],
          (row) => digestOf(text(row["digest"])),
        )
        .filter((digest) => !isPinned(digest))
      for (const digest of layers) this.#database.run("DELETE FROM layers WHERE digest = ?", [digest])
      return { images, layers }
    })
  }

  /** A layer whose folder is gone cannot be served: neither can what is made of it. */
  dropLayer(digest: Digest): void {
    this.#database.transaction(() => {
      const broken = "SELECT image FROM image_layers WHERE layer = ?"
      this.#database.run(`DELETE FROM names WHERE image IN (${broken})`, [digest])
      this.#database.run(`DELETE FROM holds WHERE image IN (${broken})`, [digest])
      this.#database.run(`DELETE FROM images WHERE id IN (${broken})`, [digest])
      this.#database.run("DELETE FROM steps WHERE layer = ?", [digest])
      this.#database.run("DELETE FROM layers WHERE digest = ?", [digest])
    })
  }

  #name(name: string, id: Digest): void {
    this.#database.run("INSERT OR REPLACE INTO names (name, image) VALUES (?, ?)", [name, id])
  }

  #imageOf(row: Row): ImageRecord {
    const id = digestOf(text(row["id"]))
    const layers = this.#database.all(
      "SELECT layer FROM image_layers WHERE image = ? ORDER BY position",
      [id],
      (layer) => digestOf(text(layer["layer"])),
    )
    return { id, manifest: text(row["manifest"]), config: text(row["config"]), madeAt: Number(row["made_at"]), layers }
  }
}

function layerOf(row: Row): LayerRecord {
  return {
    digest: digestOf(text(row["digest"])),
    entries: Number(row["entries"]),
    bytes: Number(row["bytes"]),
    opaque: JSON.parse(text(row["opaque"])) as string[],
    inside: text(row["inside"]),
  }
}

function text(value: Row[string] | undefined): string {
  return typeof value === "string" ? value : ""
}
