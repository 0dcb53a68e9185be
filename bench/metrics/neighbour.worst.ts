import { defineMetric } from "../metric.ts"
import { Runner } from "../runner.ts"

/** Each takes as much as it gets, for as long as it is let. */
const misdeeds: Readonly<Record<string, string>> = {
  cpu: "for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait",
  fork: "while :; do (sleep 5 &); done 2>/dev/null",
  memory: `while :; do perl -e 'my @x; push @x, "x" x 1000000 while 1'; done`,
  disk: "while :; do dd if=/dev/zero of=/tmp/f bs=1M 2>/dev/null; rm -f /tmp/f; done",
  inodes: "i=0; while :; do : > /tmp/i$i; i=$((i+1)); done 2>/dev/null",
  descriptors: `perl -e 'my @x; while (1) { open(my $f, "<", "/dev/null") and push @x, $f }'`,
  terminals: `perl -e 'my @x; while (1) { open(my $f, "+<", "/dev/ptmx") and push @x, $f }'`,
  inotify: `perl -e 'while (1) { syscall(294, 0) }'`,
  output: "yes",
  errors: "yes >&2",
  zombies: `perl -e 'while (1) { my $p = fork; exit 0 if defined $p && $p == 0 }'`,
  connections: `perl -MIO::Socket::INET -e 'my $l = IO::Socket::INET->new(Listen => 100, LocalAddr => "127.0.0.1", LocalPort => 7070); my @x; while (1) { my $c = IO::Socket::INET->new(PeerAddr => "127.0.0.1:7070", Timeout => 1); push @x, $c if $c }'`,
}

/** The slowest but one in a hundred of the commands of a neighbour, with the worst of the misdeeds beside it, as a multiple of without. */
export const metric = defineMetric({
  name: "neighbour.worst",
  unit: "×",
  goal: { p50Max: 2 },
  samples: { full: 1, quick: 1 },
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const observer = await runner.create({ network: { mode: "none" } })
    // The slowest but one in a hundred is a matter of chance where there are only a few hundred.
    const commands = context.isQuick ? 200 : 1_000
    for (let warm = 0; warm < commands; warm++) await runner.execTrue(observer.id)
    return { runner, observer: observer.id, commands }
  },
  async run({ runner, observer, commands }) {
    const quiet: number[] = []
    const beside: [string, number][] = []
    for (const [name, cmd] of Object.entries(misdeeds)) {
      // In turns: the machine is not the same all the time.
      quiet.push(...(await timed(runner, observer, commands / 4)))
      const { id } = await runner.create({ network: { mode: "none" } })
      await runner.call("process.spawn", { session: id, argv: ["sh", "-c", cmd] })
      await new Promise((begun) => setTimeout(begun, 500))
      beside.push([name, slowest(await timed(runner, observer, commands))])
      await runner.delete(id)
    }
    const alone = slowest(quiet)
    const ratios = beside.map(([name, ms]) => [name, ms / alone] as const)
    console.error(
      `  neighbour.worst: ${alone.toFixed(1)} ms alone; ${ratios.map(([name, x]) => `${name} ${x.toFixed(2)}`).join(", ")}`,
    )
    return Math.max(...ratios.map(([, ratio]) => ratio))
  },
})

async function timed(runner: Runner, id: string, commands: number): Promise<number[]> {
  const took: number[] = []
  for (let n = 0; n < commands; n++) {
    const begun = performance.now()
    await runner.execTrue(id)
    took.push(performance.now() - begun)
  }
  return took
}

/** But one in a hundred. */
function slowest(took: readonly number[]): number {
  return took.toSorted((a, b) => a - b)[Math.ceil(took.length * 0.99) - 1] ?? Number.NaN
}
