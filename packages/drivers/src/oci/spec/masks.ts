/** Hidden: they tell about the host or its kernel, and nothing inside needs them. What a kernel lacks is skipped.
 * Each is a mount, paid at every start: what the kernel keeps from a user namespace anyway (kpage*, vmallocinfo, iomem) is not here. */
export const maskedPaths: readonly string[] = [
  ...["acpi", "asound", "scsi"],
  ...["kcore", "kmsg", "kallsyms", "modules", "config.gz", "bootconfig", "cmdline"],
  ...["keys", "key-users"],
  ...["timer_list", "timer_stats", "sched_debug", "latency_stats", "interrupts"],
  ...["slabinfo", "pagetypeinfo"],
  "sysrq-trigger",
].map((name) => `/proc/${name}`)

/** Read-only: their files change the kernel, some of them for root of any user namespace. */
export const readonlyPaths: readonly string[] = ["bus", "fs", "irq", "sys", "sysrq-trigger"].map(
  (name) => `/proc/${name}`,
)
