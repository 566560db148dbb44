import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Duplex } from 'node:stream';
import type { Dial } from '../../src/kube/dial.ts';

/**
 * A root tree with a separate network and processes: fixed paths and ports do not conflict with the local
 * host.
 */
export interface OwnMachine {
  /** Starts a program of `programs` by its name. */
  start(argv: readonly string[]): OwnProcess;
  /** Connects to an address of its network. */
  readonly dial: Dial;
  /** Ends all its processes. */
  close(): Promise<void>;
}

export interface OwnProcess {
  /** The last lines of output. */
  output(): string;
  alive(): boolean;
}

/** The reason why such a tree is not available; null when it is. */
export function whyNoOwnMachine(): string | null {
  if (process.platform !== 'linux') return 'namespaces need Linux';
  if (process.getuid?.() !== 0) return 'namespaces need root';
  if (spawnSync('ip', ['-V']).status !== 0) return 'ip (iproute2) is not installed';
  return spawnSync('unshare', ['--mount', '--net', '--pid', '--fork', 'true']).status === 0 ? null : 'namespaces may not be made here';
}

/** $1: the root tree; $2: an address; further: programs, which are mounted in /run/programs. */
const SETUP = `set -e
root=$1 address=$2; shift 2
mount --make-rprivate /
ip link set lo up; ip address add "$address/32" dev lo
for d in bin sbin lib lib64; do
  if [ -L /$d ]; then ln -sfn "$(readlink /$d)" "$root/$d"; elif [ -d /$d ]; then mkdir -p "$root/$d"; mount --rbind /$d "$root/$d"; fi
done
mkdir -p "$root/usr" "$root/proc" "$root/dev" "$root/tmp" "$root/run/programs"
mount --rbind /usr "$root/usr"; mount --rbind /dev "$root/dev"; mount -t proc proc "$root/proc"
for p in "$@"; do : > "$root/run/programs/\${p##*/}"; mount --bind "$p" "$root/run/programs/\${p##*/}"; done
echo ready
exec sleep infinity
`;

/** Copies bytes between the standard streams and an address. */
const PIPE = `const s = require('node:net').connect(Number(process.argv[2]), process.argv[1]);
process.stdin.pipe(s); s.pipe(process.stdout); s.on('error', () => process.exit(1)); s.on('close', () => process.exit(0));`;

/**
 * @param root a directory that becomes the root of the programs; system directories of the local host are
 *   mounted in it
 * @param address an address in addition to the loopback addresses
 */
export async function startOwnMachine(root: string, address: string, programs: readonly string[]): Promise<OwnMachine> {
  mkdirSync(join(root, 'etc'), { recursive: true });
  writeFileSync(join(root, 'etc/hosts'), '127.0.0.1 localhost\n');
  const namespaces = ['--mount', '--net', '--pid', '--fork', '--kill-child'];
  const holder = spawn('unshare', [...namespaces, 'sh', '-c', SETUP, 'sh', root, address, ...programs], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const reported = keepOutput(holder);
  await Promise.race([once(holder.stdout as NodeJS.EventEmitter, 'data'), once(holder, 'exit')]);
  if (!reported().includes('ready')) throw new Error(`the tree does not start: ${reported()}`);
  const pid = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8').trim();
  const known = new Set(programs.map((program) => basename(program)));
  return {
    start: ([name = '', ...args]) => {
      if (!known.has(name)) throw new Error(`unknown program ${name}`);
      const inside = ['--target', pid, '--mount', '--net', '--pid', 'chroot', root, 'env', '-i', 'PATH=/run/programs', name, ...args];
      const child = spawn('nsenter', inside, { stdio: ['ignore', 'pipe', 'pipe'] });
      return { output: keepOutput(child), alive: () => child.exitCode === null && child.signalCode === null };
    },
    dial: async ({ host, port }) => {
      const inside = ['--target', pid, '--net', process.execPath, '-e', PIPE, host, String(port)];
      const child = spawn('nsenter', inside, { stdio: ['pipe', 'pipe', 'ignore'] });
      child.stdin.on('error', () => undefined);
      const stream = Duplex.from({ writable: child.stdin, readable: child.stdout });
      // The user of the connection receives the error, too.
      stream.on('error', () => undefined);
      return stream;
    },
    close: async () => {
      const gone = once(holder, 'exit');
      execFileSync('kill', ['-KILL', pid]);
      await gone;
    },
  };
}

function keepOutput(child: ChildProcess): () => string {
  let output = '';
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString('utf8')).slice(-4000);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  return () => output;
}
