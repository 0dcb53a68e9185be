/**
 * System call numbers of aarch64, Linux 6.17, written as in `x86-64.ts`. Up to 450 from asm-generic/unistd.h of
 * Linux 6.1 with arm64's choices (renameat, newfstatat, getrlimit, memfd_secret; 64-bit names).
 */
export const aarch64 = `
0 io_setup io_destroy io_submit io_cancel io_getevents setxattr lsetxattr fsetxattr getxattr lgetxattr
10 fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr getcwd lookup_dcookie
19 eventfd2 epoll_create1 epoll_ctl epoll_pwait dup dup3 fcntl inotify_init1 inotify_add_watch inotify_rm_watch
29 ioctl ioprio_set ioprio_get flock mknodat mkdirat unlinkat symlinkat linkat renameat umount2 mount
41 pivot_root nfsservctl statfs fstatfs truncate ftruncate fallocate faccessat chdir fchdir chroot fchmod
53 fchmodat fchownat fchown openat close vhangup pipe2 quotactl getdents64 lseek read write readv writev
67 pread64 pwrite64 preadv pwritev sendfile pselect6 ppoll signalfd4 vmsplice splice tee readlinkat newfstatat
80 fstat sync fsync fdatasync sync_file_range timerfd_create timerfd_settime timerfd_gettime utimensat acct
90 capget capset personality exit exit_group waitid set_tid_address unshare futex set_robust_list
100 get_robust_list nanosleep getitimer setitimer kexec_load init_module delete_module timer_create
108 timer_gettime timer_getoverrun timer_settime timer_delete clock_settime clock_gettime clock_getres
115 clock_nanosleep syslog ptrace sched_setparam sched_setscheduler sched_getscheduler sched_getparam
122 sched_setaffinity sched_getaffinity sched_yield sched_get_priority_max sched_get_priority_min
127 sched_rr_get_interval restart_syscall kill tkill tgkill sigaltstack rt_sigsuspend rt_sigaction
135 rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigreturn setpriority getpriority reboot
143 setregid setgid setreuid setuid setresuid getresuid setresgid getresgid setfsuid setfsgid times setpgid
155 getpgid getsid setsid getgroups setgroups uname sethostname setdomainname getrlimit setrlimit getrusage
166 umask prctl getcpu gettimeofday settimeofday adjtimex getpid getppid getuid geteuid getgid getegid gettid
179 sysinfo mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr msgget msgctl msgrcv msgsnd
190 semget semctl semtimedop semop shmget shmctl shmat shmdt socket socketpair bind listen accept connect
204 getsockname getpeername sendto recvfrom setsockopt getsockopt shutdown sendmsg recvmsg readahead brk munmap
216 mremap add_key request_key keyctl clone execve mmap fadvise64 swapon swapoff mprotect msync mlock munlock
230 mlockall munlockall mincore madvise remap_file_pages mbind get_mempolicy set_mempolicy migrate_pages
239 move_pages rt_tgsigqueueinfo perf_event_open accept4 recvmmsg
260 wait4 prlimit64 fanotify_init fanotify_mark name_to_handle_at open_by_handle_at clock_adjtime syncfs setns
269 sendmmsg process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 seccomp
278 getrandom memfd_create bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2
288 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents rseq kexec_file_load
424 pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen fsconfig
432 fsmount fspick pidfd_open clone3
436 close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2 mount_setattr quotactl_fd
444 landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret process_mrelease futex_waitv
450 set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait futex_requeue statmount
458 listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal setxattrat getxattrat listxattrat
466 removexattrat open_tree_attr file_getattr file_setattr
`
