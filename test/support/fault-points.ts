import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from './shells.ts';

/** Programs by which a shell changes a disk or a unit. */
const CHANGING = ['mv', 'rm', 'ln', 'cp', 'mkdir', 'rmdir', 'chmod', 'chown', 'cat', 'sync', 'sed', 'date'];

/**
 * A host in a directory whose shell can be stopped just before any program that changes the host. systemctl
 * is a stand-in: the kubelet is a file with the set of files it was started with, the timer is a file that
 * exists while it runs.
 */
export interface FaultyHost {
  readonly root: string;
  /** The calls of the shell, in order: `mv -f -- a b`. */
  calls(): readonly string[];
  /**
   * Runs a shell; `before`: its process group is killed just before this call, counted from 1. True: the
   * shell finished.
   */
  run(shell: readonly [string, ...string[]], argv: readonly string[], options?: FaultOptions): Promise<boolean>;
  /** Lets a program continue that waits because of `pauseBefore`. */
  resume(): void;
  /** Whether a program waits because of `pauseBefore`. */
  isPaused(): boolean;
  /** The number of attempts to take the lock that separates writers from the revert. */
  lockAttempts(): number;
  /** Whether the timer runs. */
  timerRuns(): boolean;
  /** The configuration that the kubelet was started with; null: it does not run. */
  kubeletHas(): string | null;
  startKubelet(): void;
  /** Restores timer and kubelet as of a snapshot: `DIRECTORY/N`. */
  restore(snapshot: string): void;
  /** Removes everything that a reboot clears. */
  powerOff(): void;
}

export interface FaultOptions {
  readonly before?: number;
  readonly stdin?: string;
  /** The shell waits before this call, counted from 1, until `resume`. */
  readonly pauseBefore?: number;
  readonly onStdout?: (text: string) => void;
  /**
   * A directory for snapshots before each call, by its number: a copy of the host's root, a list of it with
   * inodes, and the input of `restore`.
   */
  readonly snapshots?: string;
}

/** @param kubeletFiles files that the kubelet reads at startup */
export function faultyHost(root: string, state: string, kubeletFiles: readonly string[]): FaultyHost {
  const bin = join(state, 'bin');
  mkdirSync(bin, { recursive: true });
  const real = (name: string): string => findProgram(name) ?? name;
  const fault = `#!${real('dash')}
read n <"${state}/count"; n=$((n + 1)); echo $n >"${state}/count"; echo "\${0##*/} $*" >>"${state}/calls"
read at <"${state}/at"; if [ $n = "$at" ]; then kill -KILL 0; fi
read wait <"${state}/pause"; if [ $n = "$wait" ]; then : >"${state}/paused"; read wait <"${state}/go"; fi
if [ -s "${state}/snapshots" ]; then
  # The program under test may have set a umask that makes directories unusable for their owner, unless the owner is root.
  mask=$(umask); umask 022
  read s <"${state}/snapshots"; ${real('cp')} -a "${root}" "$s/$n"
  ( cd "${root}" && ${real('find')} . -printf '%i %y %m %T@ %p\\n' ) >"$s/$n.list"
  ${real('mkdir')} "$s/$n.state"; for f in timer kubelet; do if [ -e "${state}/$f" ]; then ${real('cp')} "${state}/$f" "$s/$n.state"; fi; done
  umask "$mask"
fi
`;
  const write = (name: string, text: string): void => {
    writeFileSync(join(bin, name), text);
    chmodSync(join(bin, name), 0o755);
  };
  for (const name of CHANGING) write(name, `${fault}exec ${real(name)} "$@"\n`);
  write('flock', `#!${real('dash')}\necho >>"${state}/locks"\nexec ${real('flock')} "$@"\n`);
  execFileSync('mkfifo', [join(state, 'go')]);
  const set = kubeletFiles.map((path) => `'${root}${path}'`).join(' ');
  const started = `{ for f in ${set}; do echo "\${f#'${root}'}:"; ${real('cat')} "$f" 2>/dev/null; done; } | ${real('sha256sum')} >"${state}/kubelet"`;
  write(
    'systemctl',
    `${fault}case "$*" in
  'is-active kubelet') echo active;;
  'is-enabled kubelet') echo enabled;;
  'restart kubelet') ${started};;
  'restart kubeletadm-revert.timer') : >"${state}/timer";;
  'is-active --quiet kubeletadm-revert.timer') [ -e "${state}/timer" ];;
  'stop kubeletadm-revert.timer') ${real('rm')} -f "${state}/timer";;
  'start kubeletadm-revert.service') exec "$SHELL_UNDER_TEST" "${root}/var/lib/kubeletadm/revert" timer;;
esac
`,
  );
  const put = (name: string, text: string): void => writeFileSync(join(state, name), text);
  return {
    root,
    calls: () => readFileSync(join(state, 'calls'), 'utf8').split('\n').slice(0, -1),
    run: (shell, argv, { before = 0, pauseBefore = 0, stdin = '', snapshots, onStdout } = {}) => {
      put('count', '0\n');
      put('calls', '');
      put('at', `${before}\n`);
      put('pause', `${pauseBefore}\n`);
      put('snapshots', snapshots === undefined ? '' : `${snapshots}\n`);
      const [program, ...first] = shell;
      // No HOME: startup files of the current user must not apply.
      const env = { HOME: '/nonexistent', PATH: `${bin}:${process.env.PATH}`, KUBELETADM_ROOT: root, SHELL_UNDER_TEST: program };
      const child = spawn(program, [...first, ...argv], { env, detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
      child.stdout.setEncoding('utf8').on('data', (text: string) => onStdout?.(text));
      return ended(child, stdin);
    },
    resume: () => put('go', '\n'),
    isPaused: () => existsSync(join(state, 'paused')),
    lockAttempts: () => (existsSync(join(state, 'locks')) ? readFileSync(join(state, 'locks'), 'utf8').length : 0),
    timerRuns: () => existsSync(join(state, 'timer')),
    kubeletHas: () => (existsSync(join(state, 'kubelet')) ? readFileSync(join(state, 'kubelet'), 'utf8') : null),
    startKubelet: () => void execFileSync('/bin/sh', ['-c', started]),
    restore: (snapshot) => cpSync(`${snapshot}.state`, state, { recursive: true }),
    powerOff: () => {
      for (const name of ['timer', 'kubelet']) rmSync(join(state, name), { force: true });
      for (const name of existsSync(join(root, 'run')) ? readdirSync(join(root, 'run')) : [])
        rmSync(join(root, 'run', name), { recursive: true });
    },
  };
}

function ended(child: ChildProcess, stdin: string): Promise<boolean> {
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(stdin);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (_, signal) => resolve(signal === null));
  });
}
