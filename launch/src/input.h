/* Frames in: from standard input to the one who answers them. */
#ifndef WARREN_LAUNCH_INPUT_H
#define WARREN_LAUNCH_INPUT_H

#include <stdbool.h>

/* Reads what is there and takes it. False: there is no more, ever. */
bool input_read(void);
/* Takes the frames that are whole, as long as there is room for jobs. */
void input_take(void);
/* Whether something was read and not taken. */
bool input_waiting(void);

#endif
