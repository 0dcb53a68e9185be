#ifndef WARREN_LAUNCH_CGROUP_H
#define WARREN_LAUNCH_CGROUP_H

/* Kills what is in a cgroup and takes the groups in it away, as far as they are empty by now; returns how many were killed. */
int cgroup_kill(const char *cgroup);
/* crun refuses a machine whose cgroup2 mount holds controllers beside v1 ("hybrid"): hides that one mount, from us alone. */
void cgroup_hide_hybrid(void);

#endif
