/**
 * Characters that could control a terminal or hide output: C0, C1, DEL, bidirectional controls, invisible
 * characters, line separators.
 */
export const HOSTILE = '\x1b]0;PWNED\x07\x1b[2J\x1b[31m\x9b1m\u0085\x7f\u202e\u2066\u200b\u00ad\ufeff\u061c\u{e0041}\u2028\u2029';

/** Matches any of them in output. A newline ends a line, a tab only moves the cursor. */
export const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
