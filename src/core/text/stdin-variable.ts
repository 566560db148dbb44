/**
 * The shell variable in which a line of `/bin/sh -c` finds its stdin, but for the newline at its end, when nothing in it is secret: no process is needed then to
 * write and to read it. It is never exported, so it ends with the shell; where it is not set, there is stdin itself.
 */
export const STDIN_VARIABLE = 'kubeletadm_stdin';
