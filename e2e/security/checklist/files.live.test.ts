import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { mebibyte, Subject } from "./subject.ts"

/** Rows of the security checklist that no other test has whole. */
describe.skipIf(process.getuid?.() !== 0)("the checklist, for files", { timeout: 120_000 }, () => {
  let subject: Subject

  beforeAll(async () => {
    subject = await Subject.start()
  }, 120_000)
  afterAll(() => subject?.[Symbol.asyncDispose](), 120_000)

  test("pipes that nobody writes to are refused, many at once, and hold up nobody (FS-04)", async () => {
    await subject.run("cd /workspace && mkfifo p1 p2 p3 p4 && echo read > plain")
    const names = ["p1", "p2", "p3", "p4", "p1", "p2", "p3", "p4"]
    const asked = names.flatMap((name) => [
      subject.statusOf(subject.inSession(`/workspace/${name}`)),
      subject.statusOf(subject.inWorkspace(name)),
    ])
    expect(new Set(await Promise.all(asked))).toEqual(new Set([400]))
    for (const path of [subject.inSession("/workspace/plain"), subject.inWorkspace("plain")])
      expect(await (await subject.system.fetch(path)).text()).toBe("read\n")
  })

  test("files without an end are sent as they are read, and kept by nobody (FS-06)", async () => {
    await subject.run(
      "cd /workspace && truncate -s 1T sparse && echo > growing; (while :; do echo more; sleep 0.01; done >> growing) & echo $! > /tmp/grows",
    )
    const before = subject.residentBytes()
    for (const path of [subject.inSession("/workspace/sparse"), subject.inWorkspace("sparse")]) {
      const cut = new AbortController()
      const answer = await subject.system.fetch(path, { signal: cut.signal })
      expect(answer.status).toBe(200)
      let bytes = 0
      for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) {
        bytes += piece.length
        if (bytes > 64 * mebibyte) break
      }
      cut.abort()
      expect(subject.residentBytes() - before).toBeLessThan(150 * mebibyte)
    }
    // What grows while it is read has an end all the same.
    for (const path of [subject.inSession("/workspace/growing"), subject.inWorkspace("growing")])
      expect((await (await subject.system.fetch(path)).arrayBuffer()).byteLength).toBeGreaterThan(0)
    await subject.run("kill -KILL $(cat /tmp/grows)")
    for (const path of ["/dev/zero", "/proc/kmsg", "/dev/tty", "/proc/self/mem"])
      expect([path, await subject.statusOf(subject.inSession(path))]).toEqual([
        path,
        expect.toSatisfy((status: number) => status >= 400 && status < 500),
      ])
    await subject.healthy()
  })

  test("paths that could mean another place are none (FS-08)", async () => {
    const forms = [
      ...[
        "..",
        "../x",
        "a/..",
        "a/../..",
        "a/../../etc/passwd",
        "/",
        "/etc/passwd",
        "//etc/passwd",
        "a\0b",
        "\0",
        "../\0",
      ],
      ...[
        "..\0",
        "a/..\0/b",
        "./..",
        "a/./../..",
        "...//../..",
        `${"a/".repeat(3_000)}b`,
        "x".repeat(5_000),
        "../".repeat(40),
      ],
      ...[".//../x", "a//../../x", `${"../".repeat(10)}etc/passwd`, "a/b/../../../x", "..//..//x"],
    ]
    // Which are plain names, and none that a server may take apart once more.
    const names = [
      "%2e%2e",
      "%2e%2e%2fx",
      "..%2f",
      "..\\x",
      "a\\..\\..",
      "C:\\x",
      "a.",
      " ",
      "~",
      "$HOME",
      "....",
      "..;x",
      "‥",
      "．．",
    ]
    for (const form of forms) {
      expect([form.slice(0, 40), await subject.statusOf(subject.inWorkspace(form))]).toEqual([form.slice(0, 40), 400])
      expect([
        form.slice(0, 40),
        await subject.statusOf(subject.inWorkspace(form), { method: "PUT", body: "x" }),
      ]).toEqual([form.slice(0, 40), 400])
    }
    for (const name of names) {
      expect([name, await subject.statusOf(subject.inWorkspace(name))]).toEqual([name, 404])
      expect([name, await subject.statusOf(subject.inWorkspace(name), { method: "PUT", body: name })]).toEqual([
        name,
        200,
      ])
      expect(await (await subject.system.fetch(subject.inWorkspace(name))).text()).toBe(name)
    }
    const made = (await subject.run("cd /workspace && ls -AN1")).split("\n")
    expect(names.filter((name) => !made.includes(name.split("/")[0] ?? ""))).toEqual([])
    // In a session a path begins at its root, whatever is in it.
    for (const form of ["", "relative", "a\0b", `/${"x".repeat(5_000)}`, "../etc/passwd"])
      expect([form.slice(0, 40), await subject.statusOf(subject.inSession(form))]).toEqual([form.slice(0, 40), 400])
  })

  test("what somebody wrote is no page of ours, whatever it is called (FS-19)", async () => {
    const page = "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(document.cookie)'/><script>alert(1)</script>"
    for (const name of ["a.html", "a.svg", "a.js", "a.xhtml", "index.html"]) {
      for (const path of [subject.inWorkspace(name), subject.inSession(`/workspace/${name}`)]) {
        expect(await subject.statusOf(path, { method: "PUT", body: page })).toBe(200)
        const answer = await subject.system.fetch(path, {
          headers: { accept: "text/html", "sec-fetch-dest": "document" },
        })
        expect(await answer.text()).toBe(page)
        expect([name, answer.headers.get("content-type"), answer.headers.get("x-content-type-options")]).toEqual([
          name,
          "application/octet-stream",
          "nosniff",
        ])
      }
    }
  })

  test("bytes that are no text are refused as text, and carried as bytes (PRO-05)", async () => {
    const odd: Record<string, Buffer> = {
      "no UTF-8": Buffer.from([0xff, 0xfe, 0xc3, 0x28]),
      "a surrogate alone": Buffer.from([0xed, 0xa0, 0x80]),
      overlong: Buffer.from([0xc0, 0xaf]),
      NUL: Buffer.from("a\0b"),
      BOM: Buffer.from([0xef, 0xbb, 0xbf, 0x61]),
    }
    for (const [what, bytes] of Object.entries(odd)) {
      for (const path of [subject.inSession("/home/user/odd"), subject.inWorkspace("odd")]) {
        expect([what, await subject.statusOf(path, { method: "PUT", body: new Uint8Array(bytes) })]).toEqual([
          what,
          200,
        ])
        expect([what, Buffer.from(await (await subject.system.fetch(path)).arrayBuffer())]).toEqual([what, bytes])
      }
      const body = Buffer.concat([Buffer.from('{"cmd":"cat","stdin":"'), bytes, Buffer.from('"}')])
      const answer = await subject.system.fetch(`/v1/sessions/${subject.session}/exec`, {
        method: "POST",
        body: new Uint8Array(body),
      })
      // A BOM within a text is a character like any other.
      if (what !== "BOM") expect([what, answer.status]).toEqual([what, 400])
      else expect(((await answer.json()) as { stdout: string }).stdout).toBe("\ufeffa")
    }
    const { files } = await subject.system.warren.sessions.get(subject.session)
    await files.write("/home/user/marked", "\ufeffmarked")
    expect(await files.readText("/home/user/marked")).toBe("\ufeffmarked")
    // As an escape it is JSON, and no text that could be carried on as what it was.
    const lone = await subject.system.fetch(`/v1/sessions/${subject.session}/exec`, {
      method: "POST",
      body: '{"cmd":"cat","stdin":"\\ud800"}',
    })
    expect(lone.status).toBe(400)
  })
})
