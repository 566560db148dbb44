import { CommitGoneError, HostLockedError } from '../../src/host/commit/commit-problems.ts';
import type { LockHolder } from '../../src/host/commit/record.ts';
import { parseRecord } from '../../src/host/commit/record.ts';
import { COMMIT_DIRECTORY } from '../../src/host/commit/revert-script.ts';
import type { FileFact } from '../../src/host/facts/query.ts';
import type { Operation, RevertRequest } from '../../src/host/operation/operation.ts';

/**
 * The lock of a fake host and its pending change, as far as the engine can distinguish them from real ones.
 */
export interface FakeCommits {
  /** The holder of the lock; tests may set it. */
  lock: LockHolder | null;
  /** Performs an operation of a confirmed commit; false: another kind of operation. */
  execute(operation: Operation): boolean;
  /** The host reverts the pending change: its timer expired, or the host was restarted. */
  fire(why: string): void;
}

export interface FakeCommitsHost {
  readonly name: string;
  readonly files: Map<string, FileFact>;
  put(path: string, file: FileFact): void;
  restart(unit: string): void;
  now(): number;
}

export function fakeCommits(host: FakeCommitsHost): FakeCommits {
  const { files } = host;
  let kept = new Map<string, FileFact | null>();
  let units: readonly string[] = [];
  const recordAt = (state: string): string => `${COMMIT_DIRECTORY}/${state}/record`;
  const textOf = (state: string): string => files.get(recordAt(state))?.content ?? '';
  const idOf = (state: string): string | undefined => /^id (.*)$/m.exec(textOf(state))?.[1];
  const write = (state: string, content: string): void =>
    host.put(recordAt(state), { type: 'file', mode: 0o600, owner: 'root:root', content });
  const gone = (what: string): CommitGoneError => {
    const state = ['commit', 'reverted'].find((one) => files.has(recordAt(one)));
    return new CommitGoneError(host.name, state === undefined ? null : parseRecord(`state ${state}\n${textOf(state)}`), what);
  };

  const arm = ({ id, owner, timeoutSeconds, paths, units: more }: RevertRequest): void => {
    if (!files.has(recordAt('commit'))) kept = new Map();
    for (const path of paths) if (!kept.has(path)) kept.set(path, files.get(path) ?? null);
    units = [...new Set([...units, ...more])];
    write('commit', `id ${id}\nowner ${owner}\narmed ${host.now()}\ntimeout ${timeoutSeconds}\n`);
  };

  const commits: FakeCommits = {
    lock: null,
    fire: (why) => {
      const text = textOf('commit');
      files.delete(recordAt('commit'));
      for (const [path, file] of kept) {
        if (file === null) files.delete(path);
        else files.set(path, file);
      }
      for (const unit of units) host.restart(unit);
      kept = new Map();
      write('reverted', `${text}why ${why}\nat ${host.now()}\n`);
    },
    execute: (operation) => {
      switch (operation.kind) {
        case 'take-lock': {
          const { owner, breaks, seconds } = operation.lock;
          const { lock } = commits;
          const isMine = lock === null || lock.id === owner.id || breaks.kind === 'any' || (breaks.kind === 'id' && breaks.id === lock.id);
          if (!isMine) throw new HostLockedError(host.name, lock);
          commits.lock = { ...owner, since: host.now(), secondsLeft: seconds };
          return true;
        }
        case 'release-lock':
          if (commits.lock?.id === operation.id) commits.lock = null;
          return true;
        case 'arm-revert':
          arm(operation.revert);
          return true;
        case 'check-commit':
          if (idOf('commit') !== operation.id) throw gone('cannot continue the change of this run');
          return true;
        case 'confirm-commit':
          if (idOf('commit') !== operation.id) throw gone('cannot confirm the change');
          files.delete(recordAt('commit'));
          files.delete(recordAt('reverted'));
          return true;
        case 'revert-commit':
          if (idOf('commit') !== operation.id) throw gone('cannot roll back the change');
          commits.fire(operation.why);
          return true;
        default:
          return false;
      }
    },
  };
  return commits;
}
