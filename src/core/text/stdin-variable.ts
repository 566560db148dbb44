/**
 * The shell variable in which a line of `/bin/sh -c` finds its stdin, but for newlines at its end, when it shares its shell with others: it need not be
 * written and read by a process then. It is never exported, so no other program sees it; where it is not set, there is stdin itself.
 */
export const STDIN_VARIABLE = 'kubeletadm_stdin';
