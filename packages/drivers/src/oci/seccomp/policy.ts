import {
  btrfs,
  cloneNamespaces,
  fileType,
  inet,
  personalities,
  renameWhiteout,
  socketFamily,
  terminal,
} from "./values.ts"

/** What a system call answers when it is not carried out. */
export type Errno = "EPERM" | "ENOSYS" | "EAFNOSUPPORT"

/** (argument & mask) is one of `values`, or with `isNot` none of them. Masks and values have 32 bits, see `checked`. */
export interface Condition {
  readonly arg: number
  readonly mask: number
  readonly values: readonly number[]
  readonly isNot?: true
}

/** Allowed when all conditions of one of the alternatives hold. */
export interface CheckedCall {
  readonly name: string
  readonly anyOf: readonly (readonly Condition[])[]
  readonly otherwise: Errno
}

export interface Policy {
  readonly allowed: readonly string[]
  /** EPERM: the program asks for something it may not do, and should say so. */
  readonly refused: readonly string[]
  readonly checked: readonly CheckedCall[]
}

export type SeccompProfile = "strict" | "dev"

const whole = 0xffff_ffff

/**
 * The policy: what is not listed answers ENOSYS, as an older kernel would, so that programs fall back to what they did
 * before that call existed.
 */
export function seccompPolicy(profile: SeccompProfile): Policy {
  // Root of a `dev` sandbox holds CAP_SYS_CHROOT for dpkg --root, debootstrap and sshd; without it chroot fails anyway.
  if (profile === "dev") return { allowed: [...allowed, "chroot"], refused, checked }
  return { allowed, refused: [...refused, "chroot"], checked }
}

const allowed = words(`
  read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek
  open openat openat2 creat close close_range dup dup2 dup3 fcntl flock pipe pipe2
  stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 readlink readlinkat getdents getdents64
  truncate ftruncate fallocate fadvise64 readahead sync syncfs fsync fdatasync sync_file_range
  sendfile copy_file_range splice tee
  mkdir mkdirat rmdir unlink unlinkat rename renameat link linkat symlink symlinkat
  chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat umask utime utimes futimesat utimensat
  getcwd chdir fchdir
  setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
  removexattr lremovexattr fremovexattr
  inotify_init inotify_init1 inotify_add_watch inotify_rm_watch

  mmap mprotect munmap mremap brk msync mincore madvise remap_file_pages mseal map_shadow_stack
  mlock mlock2 munlock mlockall munlockall memfd_create pkey_mprotect pkey_alloc pkey_free

  fork vfork execve execveat exit exit_group wait4 waitid kill tkill tgkill pidfd_open pidfd_send_signal
  getpid getppid gettid getpgid getpgrp getsid setpgid setsid set_tid_address
  set_robust_list get_robust_list futex futex_waitv rseq membarrier arch_prctl prctl ptrace
  sched_yield sched_setparam sched_getparam sched_setscheduler sched_getscheduler sched_setattr sched_getattr
  sched_get_priority_max sched_get_priority_min sched_rr_get_interval sched_setaffinity sched_getaffinity
  getpriority setpriority ioprio_get ioprio_set getcpu
  getrlimit setrlimit prlimit64 getrusage times sysinfo uname getrandom

  getuid geteuid getgid getegid getresuid getresgid getgroups
  setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capget capset
  seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self

  rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo rt_sigsuspend
  sigaltstack signalfd signalfd4 pause alarm restart_syscall

  poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2

  time gettimeofday clock_gettime clock_getres nanosleep clock_nanosleep getitimer setitimer
  timer_create timer_settime timer_gettime timer_getoverrun timer_delete timerfd_create timerfd_settime timerfd_gettime

  connect accept accept4 bind listen shutdown getsockname getpeername setsockopt getsockopt
  sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg

  shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl
  mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
`)

const refused = words(`
  mount umount2 pivot_root move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick mount_setattr
  unshare setns sethostname setdomainname
  bpf perf_event_open userfaultfd kcmp pidfd_getfd process_vm_writev lookup_dcookie
  add_key request_key keyctl
  name_to_handle_at open_by_handle_at fanotify_init fanotify_mark quotactl quotactl_fd
  init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct syslog vhangup
  iopl ioperm
  settimeofday clock_settime adjtimex clock_adjtime
`)

/**
 * Calls whose arguments decide. The filter looks at the low 32 bits of an argument only: each of these is an `int` or
 * shorter in the kernel, which drops the rest, so a filter that compared 64 bits could be walked around by setting a high
 * bit (CVE-2019-10063).
 */
const checked: readonly CheckedCall[] = [
  // New namespaces would give root's kernel surface back. clone3 hides its flags behind a pointer: ENOSYS, libc uses clone.
  { name: "clone", anyOf: [[{ arg: 0, mask: cloneNamespaces, values: [0] }]], otherwise: "EPERM" },
  {
    name: "socket",
    anyOf: [
      [{ arg: 0, mask: whole, values: [socketFamily.unix] }],
      // Other protocols (SCTP, DCCP, UDP-Lite, MPTCP) make the kernel load a module for anybody who asks.
      [
        { arg: 0, mask: whole, values: [socketFamily.inet, socketFamily.inet6] },
        { arg: 2, mask: whole, values: [inet.any, inet.icmp, inet.tcp, inet.udp, inet.icmp6] },
      ],
      // NETLINK_ROUTE alone: getifaddrs of every libc.
      [
        { arg: 0, mask: whole, values: [socketFamily.netlink] },
        { arg: 2, mask: whole, values: [0] },
      ],
    ],
    // What a kernel without the family says: programs that would like one (useradd and the audit log) then do without.
    otherwise: "EAFNOSUPPORT",
  },
  { name: "socketpair", anyOf: [[{ arg: 0, mask: whole, values: [socketFamily.unix] }]], otherwise: "EPERM" },
  { name: "personality", anyOf: [[{ arg: 0, mask: whole, values: personalities }]], otherwise: "EPERM" },
  {
    name: "ioctl",
    anyOf: [[{ arg: 1, mask: whole, values: [...Object.values(terminal), ...Object.values(btrfs)], isNot: true }]],
    otherwise: "EPERM",
  },
  // Fifos, sockets and files, no devices. A device 0:0 needs no privilege and is a whiteout to overlayfs: planted in a
  // workspace it would make files of another layer vanish. renameat2 can leave one behind, too.
  { name: "mknod", anyOf: [[{ arg: 1, ...fileType }]], otherwise: "EPERM" },
  { name: "mknodat", anyOf: [[{ arg: 2, ...fileType }]], otherwise: "EPERM" },
  { name: "renameat2", anyOf: [[{ arg: 4, mask: renameWhiteout, values: [0] }]], otherwise: "EPERM" },
]

/**
 * Known and left out on purpose (ENOSYS), so that a test can tell a decision from an oversight.
 * io_uring: the kernel's most attacked interface. Native AIO: one counter (fs.aio-max-nr) for the whole machine. NUMA calls:
 * memory of other sandboxes moves, and libnuma takes ENOSYS for "no NUMA". process_vm_readv: strace then peeks by ptrace.
 * vmsplice: Dirty-Pipe-like page games. 32-bit and obsolete calls: nobody we run needs them.
 */
export const absent = words(`
  clone3 io_uring_setup io_uring_enter io_uring_register
  io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents
  mbind get_mempolicy set_mempolicy set_mempolicy_home_node migrate_pages move_pages
  process_vm_readv process_madvise process_mrelease vmsplice memfd_secret
  modify_ldt set_thread_area get_thread_area
  cachestat statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules
  futex_wake futex_wait futex_requeue setxattrat getxattrat listxattrat removexattrat file_getattr file_setattr
  uselib ustat sysfs _sysctl nfsservctl create_module get_kernel_syms query_module getpmsg putpmsg afs_syscall tuxcall
  security epoll_ctl_old epoll_wait_old vserver uretprobe
`)

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}
