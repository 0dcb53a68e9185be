import type { ServiceName } from "@warren/protocol/user-plane/services.ts"

/** How a service is started in a sandbox, and how it is reached there. */
export interface Recipe {
  /** Ends with 127 when the program is not there. Whatever a sandbox that was put to sleep has left is taken away first. */
  readonly script: string
  /** Where it listens. None: it is spoken to by its input and output. */
  readonly socket?: string
  /** The tunnel's name its address has at the gateway. */
  readonly target?: string
  readonly hint: string
  /** What fetches its program into a session that lacks it, and the host it comes from. */
  readonly install?: { readonly script: string; readonly host: string }
}

/** The exit status of a script whose program is missing, as a shell says it. */
export const missingStatus = 127

const folder = "/tmp/.warren/services"
const prepared = `umask 077; mkdir -p ${folder}; PATH="$HOME/.local/bin:$PATH"`

const vscodeSocket = `${folder}/vscode.sock`
/** Until its person has others: as light or dark as the page around it, and what was asked for first. */
const vscodeSettings = JSON.stringify({
  "window.autoDetectColorScheme": true,
  "workbench.startupEditor": "none",
  "chat.disableAIFeatures": true,
})
const vscode: Recipe = {
  target: "vscode",
  socket: vscodeSocket,
  script: `${prepared}
command -v code-server >/dev/null || exit ${missingStatus}
rm -f ${vscodeSocket}
settings="$HOME/.local/share/code-server/User/settings.json"
[ -e "$settings" ] || { mkdir -p "\${settings%/*}" && echo '${vscodeSettings}' > "$settings"; }
[ -d /workspace ] && cd /workspace
exec code-server --socket ${vscodeSocket} --socket-mode 600 --auth none --disable-telemetry --disable-update-check \\
  --disable-workspace-trust --disable-getting-started-override "$PWD"`,
  hint: "use the image `editor`, or install code-server in the session: the page does that, and so does service.install",
  install: { script: "editor/install-editor", host: "registry.npmjs.org" },
}

const desktopSocket = `${folder}/vnc.sock`
const desktop: Recipe = {
  target: "vnc",
  socket: desktopSocket,
  // A lock whose process is no X server any more (after a restore, or killed) is taken away; a screen of somebody else's is left alone.
  script: `${prepared}
command -v Xtigervnc >/dev/null || exit ${missingStatus}
runs() { kill -0 "$1" 2>/dev/null && grep -qi "$2" "/proc/$1/comm" 2>/dev/null; }
n=1
while [ -e "/tmp/.X$n-lock" ] && runs "$(tr -d ' ' < "/tmp/.X$n-lock")" '^X'; do n=$((n + 1)); done
rm -f "/tmp/.X$n-lock" "/tmp/.X11-unix/X$n" ${desktopSocket}
held=$(readlink "$HOME/.config/chromium/SingletonLock" 2>/dev/null || true)
[ -n "$held" ] && ! runs "\${held##*-}" chrom && rm -f "$HOME"/.config/chromium/Singleton*
export DISPLAY=":$n"
Xtigervnc "$DISPLAY" -SecurityTypes None -rfbunixpath ${desktopSocket} -rfbunixmode 0600 -rfbport -1 \\
  -geometry 1280x800 -depth 24 -AlwaysShared &
server=$!
trap 'kill "$server" 2>/dev/null' EXIT
trap 'exit 0' INT TERM HUP
until [ -S "/tmp/.X11-unix/X$n" ]; do kill -0 "$server" 2>/dev/null || { wait "$server"; exit $?; }; sleep 0.05; done
command -v openbox >/dev/null && openbox &
wait "$server"`,
  hint: "use the image `desktop`, or in the session: sudo apt-get install tigervnc-standalone-server openbox",
}

const profile = `${folder}/browser`
const browser: Recipe = {
  // A new profile each time: nothing of the last one's locks or cookies is in it. Its input and output are pipes of the protocol.
  // Debian's own script before the program wants a folder that a sandbox on the machine's files does not have.
  script: `${prepared}
program=/usr/lib/chromium/chromium
for name in chromium chromium-browser google-chrome; do [ -x "$program" ] || program=$(command -v $name); done
[ -x "$program" ] || exit ${missingStatus}
rm -rf ${profile}; mkdir -p ${profile}
exec "$program" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking \\
  --disable-breakpad --disable-crash-reporter --disable-component-update --disable-sync --no-first-run --mute-audio \\
  --hide-scrollbars --user-data-dir=${profile} --remote-debugging-pipe about:blank 3<&0 4>&1 </dev/null >/dev/null`,
  hint: "use the image `desktop`, or in the session: sudo apt-get install chromium",
}

export const recipes: Readonly<Record<ServiceName, Recipe>> = { vscode, desktop, browser }

/** The service a gateway's target stands for, where no tunnel has that name. */
export function serviceAt(target: string): ServiceName | undefined {
  const found = Object.entries(recipes).find(([, recipe]) => recipe.target === target)
  return found?.[0] as ServiceName | undefined
}
