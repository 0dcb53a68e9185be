import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { rolldown } from "rolldown"
import { dist } from "../runner/home.ts"

const top = resolve(import.meta.dirname, "../..")
/** What is built anew, from the same sources as what ships; everything else is what ships. */
const programs: Readonly<Record<string, string>> = {
  runner: "apps/runner/src/main.ts",
  control: "apps/control/src/main.ts",
  launcher: "apps/launcher/src/main.ts",
  supervisor: "apps/supervisor/src/main.ts",
}

/** The programs of Warren with their failpoints, which what ships does not have. */
export class FaultBuild implements Disposable {
  readonly folder: string

  private constructor(folder: string) {
    this.folder = folder
  }

  static async make(...names: (keyof typeof programs)[]): Promise<FaultBuild> {
    const folder = mkdtempSync(join(tmpdir(), "wf-"))
    const built = new FaultBuild(folder)
    try {
      // Copies: our programs refuse to be reached through a link, and whoever builds anew meanwhile takes nothing away.
      cpSync(dist, folder, { recursive: true })
      symlinkSync(join(top, "node_modules"), join(folder, "node_modules"))
      await buildInto(folder, ...names)
      return built
    } catch (failure) {
      built[Symbol.dispose]()
      throw failure
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** In the place of what ships. */
export async function buildInto(folder: string, ...names: (keyof typeof programs)[]): Promise<void> {
  for (const name of names) await bundle(join(top, programs[name] ?? ""), join(folder, `${name}.js`))
}

async function bundle(input: string, file: string): Promise<void> {
  const build = await rolldown({
    input,
    cwd: top,
    platform: "node",
    external: ["libsql"],
    transform: { target: "node20", define: { WARREN_BUILD: JSON.stringify("failpoints") } },
  })
  await build.write({ file, format: "esm", minify: "dce-only", codeSplitting: false })
  await build.close()
}
