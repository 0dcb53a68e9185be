import type { Chance } from "./chance.ts"

/** Texts that have broken something somewhere. */
const texts: readonly string[] = [
  "",
  " ",
  "\0",
  "a\0b",
  "../../../etc/passwd",
  "/",
  "//",
  ".",
  "..",
  "%2e%2e%2f",
  "\\..\\",
  "\ud800",
  "\udfff\ud800",
  "\u202ereversed",
  "🐇".repeat(50),
  "é\u0301",
  "ß".normalize("NFD"),
  "\r\nx-evil: 1",
  "' OR 1=1 --",
  "$(reboot)",
  "{{7*7}}",
  "__proto__",
  "constructor",
  "null",
  "true",
  "NaN",
  "-1",
  "1e999",
  "0x10",
  "9007199254740993",
  "ses_0123456789abcdefghjk",
  "ses_",
  "x".repeat(300),
  "x".repeat(5_000),
  "-rf",
  "~",
  "*",
  "a".repeat(64),
]

const values: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  1,
  0.5,
  1e308,
  -1e308,
  2 ** 31,
  2 ** 53,
  2 ** 53 + 2,
  Number.MAX_SAFE_INTEGER,
  [],
  {},
  [[]],
  [null],
  { __proto__: null },
  { length: 1e9 },
  { toString: "x" },
]

export function anyText(chance: Chance): string {
  if (chance.is(0.02)) return "y".repeat(chance.one([70_000, 600_000, 1_200_000]))
  return chance.one(texts)
}

export function anyValue(chance: Chance): unknown {
  if (chance.is(0.4)) return anyText(chance)
  if (chance.is(0.05)) return Array.from({ length: 5_000 }, () => "z")
  return chance.one(values)
}

const depth = 20_000

/** Bodies that are no object, or that a careless reader takes for another one. */
export function anyBody(chance: Chance, json: string): string | Buffer {
  return chance.one<() => string | Buffer>([
    () => "",
    () => "{",
    () => "null",
    () => "[]",
    () => '"text"',
    () => "0",
    () => json.slice(0, chance.below(json.length + 1)),
    () => `${json}${json}`,
    () => json.replace("{", '{"__proto__":{"isAdmin":true},'),
    () => json.replace(/^\{("[^"]+"):/, "{$1:null,$1:"),
    () => "[".repeat(depth) + "]".repeat(depth),
    () => '{"a":'.repeat(depth) + "1" + "}".repeat(depth),
    () => `{"labels":${'{"a":'.repeat(500)}1${"}".repeat(500)}}`,
    () => Buffer.from([0xff, 0xfe, 0x00, 0x7b]),
    () => Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]),
    () => `\ufeff${json}`,
    () => `{"name":"${"n".repeat(1_100_000)}"}`,
    () => "a=1&b=2",
  ])()
}

export function anyHeaders(chance: Chance): Record<string, string> {
  return chance.one<Record<string, string>>([
    {},
    { "content-type": "text/plain" },
    { "content-type": "application/json; charset=utf-16" },
    { "content-type": "multipart/form-data; boundary=x" },
    { "idempotency-key": chance.one(["", "k", "k".repeat(255), "k".repeat(256), "ké"]) },
    {
      range: chance.one([
        "bytes=0-",
        "bytes=-1",
        "bytes=5-2",
        "bytes=99999999999999999999-",
        "lines=1-2",
        "bytes=0-1,3-4",
      ]),
    },
    { "last-event-id": chance.one(["0", "-1", "x", "9007199254740993", "1e3"]) },
    { accept: "text/event-stream" },
    { accept: "*/*;q=0" },
    { "accept-encoding": chance.one(["gzip", "br", "*", "gzip;q=0", ";;;", "gzip;q=x"]) },
    { upgrade: "websocket" },
    { upgrade: "h2c", connection: "upgrade" },
    { traceparent: "00-zz-1-01" },
    { cookie: "warren-sign-in=nonsense" },
    { cookie: "warren-sign-in=a; warren-sign-in=b" },
    { origin: "https://evil.example" },
    { host: "evil.example" },
    { "x-forwarded-for": "127.0.0.1", "x-forwarded-host": "evil.example" },
    { "content-encoding": "gzip" },
    { expect: "100-continue" },
    { "if-range": '"x"', range: "bytes=0-1" },
  ])
}
