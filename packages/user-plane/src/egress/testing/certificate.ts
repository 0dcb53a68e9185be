import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import type { TempFolder } from "@warren/base/testing/temp-folder.ts"

/** A certificate of its own for a name. */
export function certificateFor(name: string, folder: TempFolder): { key: Buffer; cert: Buffer; certFile: string } {
  const [keyFile, certFile] = [folder.at("key.pem"), folder.at("cert.pem")]
  const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`]
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
  execFileSync("openssl", ["req", "-x509", ...curve, "-keyout", keyFile, "-out", certFile, ...subject], {
    stdio: "pipe",
  })
  return { key: readFileSync(keyFile), cert: readFileSync(certFile), certFile }
}
