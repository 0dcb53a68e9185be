// Every bound of init in one place; the table in docs/internals/init-wire.md says the same.
#ifndef LIMITS_H
#define LIMITS_H

enum {
    JSON_FRAME_MAX = 1 << 20,
    STREAM_FRAME_MAX = 256 << 10,
    JSON_DEPTH_MAX = 16,
    CONNECTIONS_MAX = 512,
    SUDO_CONNECTIONS_MAX = 64,
    SUDO_REQUEST_MS = 5000,
    ARGV_MAX = 4096,
    ENV_MAX = 4096,
    PROCESSES_MAX = 1024,
    SHELLS_MAX = 64,
    FINISHED_MAX = 256,
    REPLAY_DEFAULT = 1 << 20,
    REPLAY_MAX = 8 << 20,
    REPLAY_TOTAL_MAX = 64 << 20,
    REPLAY_RUNS_MAX = 8192,
    ATTACHERS_MAX = 16,
    WATCHES_MAX = 8192,
    PATH_BYTES_MAX = 4095,
    COMMAND_MAX = 8 << 20,
    OUT_BUFFER_MAX = 256 << 10, // of one connection, before its producer is held back
    READ_CHUNK = 128 << 10,
    PIPE_GROWN = 256 << 10,
    DRAINS_MAX = 1024,
    LINGER_MS = 2000,
    FORWARDS_MAX = 4,
    FORWARD_CONNECTIONS_MAX = 256,
    FORWARD_UID = 65532, // nobody else's: neither commands nor PID 1 run as it
    ABORT_MS = 500, // a shell has this long to come back after an abort
};

#endif
