/* Volumes of other Warrens, of which a new mount namespace has copies. */
#ifndef WARREN_LAUNCH_FOREIGN_H
#define WARREN_LAUNCH_FOREIGN_H

/* Lets go of them: a copy would keep their loop device busy for as long as we live, though they were unmounted. */
void foreign_release(void);

#endif
