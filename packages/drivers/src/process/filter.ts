import { compilePolicy } from "../oci/seccomp/compile.ts"
import { seccompPolicy, type CheckedCall, type Condition, type Policy } from "../oci/seccomp/policy.ts"
import { archs, type Arch } from "../oci/seccomp/syscalls.ts"

const whole = 0xffff_ffff
const equals = (arg: number, ...values: number[]): Condition => ({ arg, mask: whole, values })
const traceMe = 0
const priorityOfProcess = 0
const ioPriorityOfProcess = 1
const self = 0

/**
 * Without namespaces these reach the host. Sockets: Landlock knows neither UDP nor sockets with a path, and behind those
 * wait a person's D-Bus, ssh agent and Docker. System V and POSIX queues: one set for the machine, which outlives its maker.
 * Attributes by path: Landlock does not look at them, and they need no more than the right to write; by a file that is open they are free.
 */
const refusedAlways = words(`
  socket setxattr lsetxattr removexattr lremovexattr
  shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl
  mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
`)

/** By path, and Landlock does not look at them: with a person's own uid they would reach every file of that person. */
const refusedAsPerson = words(`
  chmod fchmodat fchmodat2 chown lchown fchownat
`)

/** These act on any process of the same uid, which Landlock does not forbid: only on the caller itself. */
const onlySelf: readonly CheckedCall[] = [
  ...words("prlimit64 sched_setaffinity sched_setscheduler sched_setparam sched_setattr").map((name): CheckedCall => ({
    name,
    anyOf: [[equals(0, self)]],
    otherwise: "EPERM",
  })),
  { name: "setpriority", anyOf: [[equals(0, priorityOfProcess), equals(1, self)]], otherwise: "EPERM" },
  { name: "ioprio_set", anyOf: [[equals(0, ioPriorityOfProcess), equals(1, self)]], otherwise: "EPERM" },
  // A child that makes its parent its tracer stops in a way that the parent takes for an end.
  { name: "ptrace", anyOf: [[{ ...equals(0, traceMe), isNot: true }]], otherwise: "EPERM" },
]

/** The system calls of a sandbox of this driver. `isPerson`: it runs with the uid of whoever runs Warren. */
export function processPolicy(isPerson: boolean): Policy {
  const strict = seccompPolicy("strict")
  const refused = [...refusedAlways, ...(isPerson ? refusedAsPerson : [])]
  const decided = new Set([...refused, ...onlySelf.map(({ name }) => name)])
  return {
    allowed: strict.allowed.filter((name) => !decided.has(name)),
    refused: [...strict.refused, ...refused],
    checked: [...strict.checked.filter(({ name }) => !decided.has(name)), ...onlySelf],
  }
}

export function processFilter(isPerson: boolean, arch: Arch): Buffer {
  return compilePolicy(processPolicy(isPerson), archs[arch])
}

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}
