/** Characters with which a host could write to a terminal, or hide what it says: C0, C1, DEL, bidirectional controls, invisible characters, line separators. */
export const HOSTILE = '\x1b]0;PWNED\x07\x1b[2J\x1b[31m\x9b1m\u0085\x7f\u202e\u2066\u200b\u00ad\ufeff\u061c\u{e0041}\u2028\u2029';

/** Any of them in what was printed. A newline is the end of a line, a tab moves a cursor and no more. */
export const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
