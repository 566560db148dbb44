import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** The echo of the terminal that is standard input. */
export interface TerminalEcho {
  /** Hides typed characters. No effect for a background process, which must not change the terminal. */
  off(): void;
  /** As before `off`; may be called twice. */
  restore(): void;
}

/**
 * The terminal shows typed lines wherever the cursor is, so that Enter moves a live display. Ctrl-C and Ctrl-Z work as before: only
 * the echo changes, not the mode of the terminal.
 */
export function terminalEcho(stdin: { readonly isTTY?: boolean }): TerminalEcho {
  let saved: string | null = null;
  const restore = (): void => {
    // A shell sets its own mode when it puts a process into the background.
    if (saved !== null && isForeground()) stty(saved);
    saved = null;
  };
  return {
    off: () => {
      if (saved !== null || stdin.isTTY !== true || !isForeground()) return;
      saved = stty('-g');
      if (saved === null) return;
      stty('-echo');
      process.once('exit', restore);
    },
    restore: () => {
      restore();
      process.removeListener('exit', restore);
    },
  };
}

/** The output of stty(1); null: it failed, or does not exist. */
function stty(argument: string): string | null {
  const { status, stdout } = spawnSync('stty', [argument], { stdio: ['inherit', 'pipe', 'ignore'], encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}

/** Whether the terminal belongs to this process group; false where proc(5) does not tell. */
function isForeground(): boolean {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    // The command name in parentheses may contain any character.
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === foreground;
  } catch {
    return false;
  }
}
