// What the command line said. Filled by main, read by everyone.
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <sys/types.h>

#ifndef BUILD_ID
#define BUILD_ID "unknown"
#endif

struct config {
    bool dev; // profile dev: root inside is allowed
    uid_t uid;
    gid_t gid;
    const char *workspace;
    const char *sudoSocket;
};

extern struct config config;

#endif
