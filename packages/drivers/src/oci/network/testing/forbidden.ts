import { execFileSync, spawnSync } from "node:child_process"

/** What only somebody who broke out of everything else could send from a sandbox's network: made here, by root, from outside. */
export const six = { outside: "fd00:9::2", host: "fd00:9::1", gateway: "fd00:8::1", sandbox: "fd00:8::2" }

/** Its type of answer: 0 is an echo, 3 a refusal. */
export const ping = `
  use Socket; socket(my $s, AF_INET, SOCK_RAW, 1) or die; alarm 2;
  send($s, pack("C2 n3", 8, 0, 0xf7fe, 1, 0), 0, sockaddr_in(0, inet_aton($ARGV[0]))) or die;
  recv($s, my $answer, 200, 0); print "type ", unpack("x20 C", $answer)`

/** What it says; nothing when it fails. */
export function quiet(program: string, ...args: string[]): string {
  return spawnSync(program, args, { stdio: ["ignore", "pipe", "ignore"] })
    .stdout.toString()
    .trim()
}

/** The host's end of a cable, by its address. */
export function deviceOf(address: string): string {
  return / (wrn\w+) /.exec(quiet("ip", "-o", "addr", "show", "to", address))?.[1] ?? ""
}

/**
 * Gives both ends of a sandbox's cable and the machine outside addresses of version 6, has the ends of the cable know each other (asking
 * is refused, as everything to the host is), and lets the host pass packets on.
 */
export function versionSix(inside: string, device: string, outside: number): void {
  const there = `--net=/proc/${outside}/ns/net`
  const address = (name: string, own: string): string =>
    `echo 0 > /proc/sys/net/ipv6/conf/${name}/disable_ipv6 && ip -6 addr add ${own}/64 dev ${name} nodad`
  const knows = (name: string, other: string, at: string): string =>
    `ip -6 neigh replace ${other} lladdr ${at} dev ${name}`
  const [near, far] = [cardOf(device), cardOf("eth0", inside)]
  sh(`${address(device, six.gateway)} && ${knows(device, six.sandbox, far)} && ${address("up0", six.host)}`)
  sh("echo 1 > /proc/sys/net/ipv6/conf/all/forwarding")
  const way = `ip -6 route add default via ${six.gateway}`
  sh(`${address("eth0", six.sandbox)} && ${knows("eth0", six.gateway, near)} && ${way}`, inside)
  sh(`${address("eth0", six.outside)} && ip -6 route add default via ${six.host}`, there)
}

function sh(script: string, where?: string): void {
  execFileSync("nsenter", [...(where === undefined ? [] : [where]), "sh", "-c", script])
}

function cardOf(device: string, where?: string): string {
  const words = ["ip", "-o", "link", "show", device]
  const shown = where === undefined ? quiet("ip", ...words.slice(1)) : quiet("nsenter", where, ...words)
  return /link\/ether (\S+)/.exec(shown)?.[1] ?? ""
}
