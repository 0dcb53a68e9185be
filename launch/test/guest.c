/* PID 1 of test sandboxes. One connection, one line: "VERB ARGUMENT…"; the answer is text. Files are touched as root inside. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void answer(int c, const char *op, char *a, char *b)
{
	int result = 0;
	char text[65536];
	if (strcmp(op, "cat") == 0) {
		int fd = open(a, O_RDONLY);
		ssize_t n = 0, used = 0;
		while (fd >= 0 && used < (ssize_t)sizeof text && (n = read(fd, text + used, sizeof text - (size_t)used)) > 0)
			used += n;
		if (fd >= 0 && n >= 0) {
			if (write(c, text, (size_t)used) < 0)
				_exit(1);
			return;
		}
		result = -1;
	} else if (strcmp(op, "write") == 0) {
		int fd = open(a, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		result = fd < 0 || write(fd, b, strlen(b)) < 0 ? -1 : 0;
	} else if (strcmp(op, "fill") == 0) { /* as many bytes as asked for, on the disk */
		int fd = open(a, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		long done = 0, wanted = atol(b);
		for (size_t i = 0; i < sizeof text; i++)
			text[i] = (char)(i * 7);
		while (fd >= 0 && done < wanted && result == 0) {
			ssize_t n = write(fd, text, sizeof text);
			if (n > 0)
				done += n;
			if (n < 0 || (done % (1 << 20) == 0 && fsync(fd) < 0))
				result = -1;
		}
		if (fd < 0 || result < 0 || fsync(fd) < 0) {
			dprintf(c, "%s after %ld", strerror(errno), done);
			return;
		}
	} else if (strcmp(op, "unlink") == 0) {
		result = unlink(a);
	} else if (strcmp(op, "mkdir") == 0) {
		result = mkdir(a, 0755);
	} else if (strcmp(op, "subvolume") == 0) { /* on a btrfs: named b, in the directory a */
		struct { long fd; char name[4088]; } args = {0};
		strcpy(args.name, b);
		result = ioctl(open(a, O_RDONLY), _IOW(0x94, 14, args), &args);
	} else if (strcmp(op, "mknod") == 0) {
		result = mknod(a, S_IFCHR | 0666, 0x103);
	} else if (strcmp(op, "chown") == 0) {
		result = chown(a, (uid_t)atoi(b), (gid_t)atoi(b));
	} else if (strcmp(op, "keyctl") == 0) {
		result = (int)syscall(SYS_keyctl, 0, -3, 0);
	} else if (strcmp(op, "fork") == 0) { /* leaves a child behind that ignores everything */
		if (fork() == 0) {
			close(c);
			signal(SIGTERM, SIG_IGN);
			for (;;)
				pause();
		}
	} else if (strcmp(op, "stat") == 0) {
		struct stat st;
		result = lstat(a, &st);
		if (result == 0) {
			dprintf(c, "%d:%d %o", (int)st.st_uid, (int)st.st_gid, (unsigned)st.st_mode);
			return;
		}
	} else {
		errno = ENOSYS;
		result = -1;
	}
	dprintf(c, "%s", result < 0 ? strerror(errno) : "ok");
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		int c = accept(3, NULL, NULL);
		if (c < 0)
			return 1;
		char line[4096];
		ssize_t n = read(c, line, sizeof line - 1);
		if (n > 0) {
			line[n] = 0;
			line[strcspn(line, "\n")] = 0;
			char *op = strtok(line, " "), *a = strtok(NULL, " "), *b = strtok(NULL, "");
			if (op && strcmp(op, "exit") == 0)
				return atoi(a ? a : "0");
			if (op && strcmp(op, "ping") == 0)
				dprintf(c, "pong");
			else if (op && strcmp(op, "self") == 0)
				answer(c, "cat", "/proc/self/status", "");
			else if (op && fork() == 0) {
				if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
					dprintf(c, "cannot be root");
				answer(c, op, a ? a : "", b ? b : "");
				_exit(0);
			}
		}
		close(c);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}
