/** Addresses that are no repository's, or are meant to make git run something. */
export const hostileAddresses: readonly string[] = [
  ...["ext::sh -c touch% /tmp/MARK", "ext::sh$IFS-c$IFS'touch$IFS/tmp/MARK'", "fd::17", "transport::address"],
  ...["--upload-pack=touch${IFS}/tmp/MARK", "-u", "-oProxyCommand=touch /tmp/MARK", "--config=core.sshCommand=touch"],
  ...["ssh://-oProxyCommand=touch${IFS}/tmp/MARK/x", "-oProxyCommand=x@host:path", "git@-oProxyCommand=x:y/z"],
  ...["https://user:token@example.com/a/b", "https://token@example.com/a/b", "http://x:y@169.254.169.254/latest"],
  ...[
    "https://example.com/../../etc",
    "https://example.com/a/..",
    "a/b c",
    "a\\b",
    "owner/-x",
    "owner/..",
    "./x",
    "../x",
  ],
  ...[
    "javascript:alert(1)",
    "ftp://example.com/a/b",
    "git://example.com/a/b",
    "gopher://x/y/z",
    "data:,x",
    "",
    " ",
    "\n",
  ],
  ...["https://", "https:///etc/passwd", "C:\\x\\y", "a/b\0c", "https://exa mple.com/a/b"],
]

/** What a repository can hold that is run by a git that trusts it, each made in its own folder. `touch MARK` is what it wants. */
export const hostileRepositories: Readonly<Record<string, string>> = {
  "an fsmonitor": `git config core.fsmonitor 'touch MARK'`,
  "an fsmonitor as a hook": `printf '#!/bin/sh\\ntouch MARK\\n' > m; chmod +x m; git config core.fsmonitor ./m`,
  "hooks of its own": `mkdir -p .git/hooks; for h in post-checkout post-index-change pre-commit reference-transaction; do printf '#!/bin/sh\\ntouch MARK\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done`,
  "a folder of hooks": `mkdir hooks; printf '#!/bin/sh\\ntouch MARK\\n' > hooks/post-index-change; chmod +x hooks/*; git config core.hooksPath hooks`,
  "a pager": `git config core.pager 'touch MARK; cat'; git config pager.status true; git config pager.diff true`,
  "an editor": `git config core.editor 'touch MARK'; git config sequence.editor 'touch MARK'`,
  "an external diff": `git config diff.external 'touch MARK #'`,
  "an external diff by attribute": `git config diff.x.command 'touch MARK #'; echo '* diff=x' > .gitattributes`,
  "a text conversion": `git config diff.x.textconv 'touch MARK; cat'; echo '* diff=x' > .gitattributes`,
  "a filter": `git config filter.x.clean 'touch MARK; cat'; git config filter.x.smudge 'touch MARK; cat'; echo '* filter=x' > .gitattributes`,
  "a filter that goes on, as LFS has": `git config filter.lfs.process 'touch MARK'; git config filter.lfs.required true; echo '* filter=lfs' > .gitattributes`,
  "a merge driver": `git config merge.x.driver 'touch MARK'; echo '* merge=x' > .gitattributes`,
  "an included file": `printf '[core]\\n\\tfsmonitor = touch MARK\\n' > more; git config include.path ../more`,
  "a file included by folder": `printf '[core]\\n\\tfsmonitor = touch MARK\\n' > more; git config includeIf.gitdir:/.path ../more`,
  "an ssh command": `git config core.sshCommand 'touch MARK'; git config remote.origin.url ssh://x/y`,
  "a helper for passwords": `git config credential.helper '!touch MARK'`,
  "an address that runs": `git config remote.origin.url 'ext::touch MARK'; git config remote.origin.uploadpack 'touch MARK'`,
  aliases: `git config alias.status '!touch MARK'; git config alias.diff '!touch MARK'; git config alias.rev-parse '!touch MARK'`,
  "a submodule elsewhere": `printf '[submodule "x"]\\n\\tpath = x\\n\\turl = ext::touch MARK\\n\\tupdate = !touch MARK\\n' > .gitmodules`,
  "a submodule with a step up in its name": `printf '[submodule "../../x"]\\n\\tpath = x\\n\\turl = ./\\n' > .gitmodules`,
  "a submodule that begins with a dash": `printf '[submodule "x"]\\n\\tpath = -x\\n\\turl = -u./x\\n' > .gitmodules`,
  "a linked .git": `mv .git ../elsewhere.git; ln -s ../elsewhere.git .git; git config core.fsmonitor 'touch MARK'`,
  "a .git that is a file": `mv .git ../filed.git; echo 'gitdir: ../filed.git' > .git; git config core.fsmonitor 'touch MARK'`,
  "a work tree that is everything": `git config core.worktree /`,
  "a bare one inside": `git init -q --bare inner; git -C inner config core.fsmonitor 'touch MARK'`,
  "names of two cases": `mkdir A a; echo > A/post-checkout; ln -s .git/hooks a/x; ln -s .git LINK`,
  "a link to everything": `ln -s / all; ln -s /etc/shadow shadow; ln -s ../../../../../.. up`,
  "odd names": `touch -- '--output=MARK' '-x' "$(printf 'a\\nb')" "$(printf 'a\\033]52;c;x\\007')"; touch "$(printf '\\377\\376')"`,
  "objects of another": `mkdir -p .git/objects/info; echo /root > .git/objects/info/alternates`,
  "an index that is none": `head -c 4096 /dev/urandom > .git/index`,
  "a HEAD that leads out": `echo 'ref: ../../../../etc/passwd' > .git/HEAD`,
  "packed refs of nonsense": `head -c 100000 /dev/urandom > .git/packed-refs`,
  "a config of nonsense": `head -c 10000 /dev/urandom > .git/config`,
}

/** Everything in one script: each in a folder of its own below `base`, with a change to look at. */
export function makingRepositories(base: string, mark: string): string {
  const each = Object.values(hostileRepositories).map((hostile, at) => {
    const made = `mkdir -p ${base}/r${at}/repo && cd ${base}/r${at}/repo && git init -q . && echo one > f && git add f`
    const kept = `git -c user.name=x -c user.email=x@y commit -qm one && echo two > f`
    return `( ${made} && ${kept}; ${hostile.replaceAll("MARK", `${mark}-${at}`)} ) >/dev/null 2>&1`
  })
  return `${each.join("\n")}\ntrue`
}
