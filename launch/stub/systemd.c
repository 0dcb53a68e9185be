/* A libsystemd.so.0 that can do nothing, for crun alone. Debian's crun is linked against libsystemd, which brings five more
 * libraries (gcrypt, gpg-error, lzma, zstd, lz4): 0.7 ms of dynamic linking at every start. We run crun with
 * --cgroup-manager=disabled, where it asks systemd for nothing; if it ever does, it is told ENOSYS. */
#define NOTHING(name) int name(void) { return -38; }
NOTHING(sd_bus_call)
NOTHING(sd_bus_default_system)
NOTHING(sd_bus_default_user)
NOTHING(sd_bus_error_free)
NOTHING(sd_bus_error_get_errno)
NOTHING(sd_bus_match_signal_async)
NOTHING(sd_bus_message_append)
NOTHING(sd_bus_message_append_strv)
NOTHING(sd_bus_message_close_container)
NOTHING(sd_bus_message_new_method_call)
NOTHING(sd_bus_message_open_container)
NOTHING(sd_bus_message_read)
NOTHING(sd_bus_message_unref)
NOTHING(sd_bus_process)
NOTHING(sd_bus_unref)
NOTHING(sd_bus_wait)
NOTHING(sd_journal_send_with_location)
NOTHING(sd_notify)
NOTHING(sd_notify_barrier)
