#define _GNU_SOURCE
#include "foreign.h"
#include "request.h"

#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#define FOREIGN_MAX 256

static bool is_volume(const char *path)
{
	const char *last = strrchr(path, '/');
	return last && strcmp(last, "/volume") == 0;
}

void foreign_release(void)
{
	static char paths[FOREIGN_MAX][256];
	char line[4096], at[256];
	int count = 0;
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	while (mounts && count < FOREIGN_MAX && fgets(line, sizeof line, mounts)) {
		/* Ours have plain names (a path with a space is written with an escape and is nobody's volume). */
		if (sscanf(line, "%*d %*d %*s %*s %255s", at) == 1 && strstr(line, " - btrfs /dev/loop") && is_volume(at) && !root_of(at))
			strcpy(paths[count++], at);
	}
	if (mounts)
		fclose(mounts);
	for (int i = 0; i < count; i++)
		umount2(paths[i], MNT_DETACH | UMOUNT_NOFOLLOW);
}
