// File operations. Each runs in a helper process, as the user it acts for.
#ifndef FILE_H
#define FILE_H

#include <sys/stat.h>

#include "conn.h"

struct helper;

void op_file_read(struct conn *, struct request *);
void op_file_write(struct conn *, struct request *);
void op_file_list(struct conn *, struct request *);
void op_file_stat(struct conn *, struct request *);
void op_file_mark(struct conn *, struct request *);
void op_file_mkdir(struct conn *, struct request *);
void op_file_move(struct conn *, struct request *);
void op_file_remove(struct conn *, struct request *);
void op_file_watch(struct conn *, struct request *);
void op_connect(struct conn *, struct request *);

// One entry as JSON; dir and leaf are where to read a symlink's target, name is what it is called in the answer.
void entry_text(struct text *, int dir, const char *leaf, const char *name, const struct stat *);
// What is noted about it, where the request asked for that; marks_shown looks whether it did.
void marks_shown(struct helper *);
void marks_text(struct text *, int dir, const char *leaf, mode_t mode);
int make_parents(const char *path); // 0, or an errno

#endif
