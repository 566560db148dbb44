import type ssh2 from 'ssh2';

export interface Listeners {
  readonly stdout: (chunk: Buffer) => void;
  readonly stderr: (chunk: Buffer) => void;
}

/** What a server says of a session's end. */
export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A channel of a session whose output goes to whoever listens now: a shell may run one line after the other. */
export interface Wire {
  readonly channel: ssh2.ClientChannel;
  /** Null when the server says nothing of the end. Both streams have closed by then: the exit status comes before the last output. */
  readonly ended: Promise<Exit | null>;
  listen(listeners: Listeners): void;
}

/** Listens to a channel from before anything can come. */
export function wire(channel: ssh2.ClientChannel, first: Listeners): Wire {
  let listeners = first;
  const ended = new Promise<Exit | null>((resolve) => {
    let exit: Exit | null = null;
    let open = 2;
    const onClose = (): void => {
      if (--open === 0) resolve(exit);
    };
    channel.on('exit', (code: number | null, signal?: string) => {
      exit = { code, signal: signal ?? null };
    });
    channel.on('data', (chunk: Buffer) => listeners.stdout(chunk));
    channel.stderr.on('data', (chunk: Buffer) => listeners.stderr(chunk));
    channel.on('close', onClose);
    channel.stderr.on('close', onClose);
    // What was not read of stdin when the program ended is no failure.
    channel.on('error', () => undefined);
    channel.stderr.on('error', () => undefined);
  });
  return {
    channel,
    ended,
    listen: (next) => {
      listeners = next;
    },
  };
}

/** The shell of a connection that waits for its next line; at most one. */
export interface KeptShell {
  /** Whoever takes it has it alone; null: there is none. */
  take(): Wire | null;
  /** Takes back one that waits. Where there is one already, it is let go. */
  keep(line: Wire): void;
  /** Ends the one there is, and resolves when it has. Null: there is none. */
  letGo(): Promise<unknown> | null;
}

const NOBODY: Listeners = { stdout: () => undefined, stderr: () => undefined };

/** The place for it, empty. */
export function keptShell(): KeptShell {
  let kept: Wire | null = null;
  const take = (): Wire | null => {
    const mine = kept;
    kept = null;
    return mine;
  };
  return {
    take,
    keep: (line) => {
      line.listen(NOBODY);
      if (kept !== null) {
        line.channel.end();
        return;
      }
      kept = line;
      void line.ended.then(() => {
        if (kept === line) kept = null;
      });
    },
    letGo: () => {
      const mine = take();
      mine?.channel.end();
      return mine?.ended ?? null;
    },
  };
}
