import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { bundle } from '../support/bundle.ts';
import { adoptArguments } from '../support/first-node.ts';
import { runCommand } from '../support/run-cli.ts';
import { THOROUGH } from '../support/thorough.ts';
import { readTree } from '../support/tree.ts';

const CRASH_CLI = fileURLToPath(new URL('../support/crash-cli.ts', import.meta.url));
let directoryOfProgram = '';
let program = '';
beforeAll(async () => {
  directoryOfProgram = mkdtempSync(join(tmpdir(), 'ka-crash-cli-'));
  program = await bundle(CRASH_CLI, directoryOfProgram);
});
afterAll(() => rmSync(directoryOfProgram, { recursive: true, force: true }));

const open = new Map<Lab, string>();
async function close(lab: Lab): Promise<void> {
  const directory = open.get(lab);
  open.delete(lab);
  await lab.close();
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
}
afterEach(async () => {
  for (const lab of open.keys()) await close(lab);
});

async function newLab(): Promise<Lab> {
  const directory = mkdtempSync(join(tmpdir(), 'ka-crash-'));
  const lab = await startLab({ directory, hosts: 2 });
  open.set(lab, directory);
  return lab;
}

const adoptLab = async (lab: Lab): Promise<void> => {
  expect((await runCommand(adoptArguments(lab))).code).toBe(0);
};
const joinArgv = (lab: Lab): string[] => [
  'join',
  lab.server.replace('https://', ''),
  '--token',
  lab.token.reveal(),
  '--ca-cert',
  lab.caFile,
  '--ssh-config',
  lab.sshConfig,
  '--host',
  'node2',
  '--set',
  'maxPods=50',
];

const resetArgv = (lab: Lab): string[] => [
  'reset',
  '--force',
  '--delete-node',
  '--kubeconfig',
  lab.kubeconfig,
  '--ssh-config',
  lab.sshConfig,
  '--host',
  'node2',
];

/** Every n-th change is tested, each one by `npm run test:thorough`. */
const STRIDE = THOROUGH ? 1 : 4;

/** Runs the command in a separate process that is killed after change n. */
function crash(n: number, argv: readonly string[]): Promise<{ killed: boolean; output: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, String(n), ...argv], { timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ killed: error?.signal === 'SIGKILL', output: stdout + stderr });
    });
  });
}

/**
 * The host's files without parts that every bootstrap generates (certificates, ports, addresses of this lab),
 * and without the lock of a dead run, which expires.
 */
function filesOf(lab: Lab, index: number): Readonly<Record<string, string>> {
  const host = lab.hosts[index];
  if (host === undefined) throw new Error(`no host ${index}`);
  // The history has the time of each run, and none of a killed run; undo records have its ids.
  const {
    'run/kubeletadm.lock': _lock,
    'var/log/kubeletadm/history.jsonl': _history,
    ...files
  } = readTree(host.rootDir, (path, content) =>
    // Certificates and keys are new in each run, and so is the start time of the kubelet.
    /\.(pem|crt|conf)$|^proc\/\d+\/stat$/.test(path) && !path.endsWith('10-kubeadm.conf') ? '...' : content,
  );
  return Object.fromEntries(Object.entries(files).filter(([path]) => !path.startsWith('var/log/kubeletadm/undo/')));
}

describe.each([
  {
    name: 'cluster adopt',
    index: 1,
    argv: (lab: Lab) => [...adoptArguments(lab)],
    last: 'created RoleBinding kube-public/kubeadm:bootstrap-signer-clusterinfo',
    least: 16,
    prepare: async (_lab: Lab) => {},
  },
  {
    name: 'join',
    index: 1,
    argv: joinArgv,
    last: 'restarted kubelet',
    least: 9,
    prepare: adoptLab,
  },
  {
    name: 'reset',
    index: 1,
    argv: resetArgv,
    last: 'removed /etc/kubernetes/kubelet.conf',
    least: 5,
    prepare: async (lab: Lab) => {
      await adoptLab(lab);
      expect((await runCommand(joinArgv(lab))).code).toBe(0);
    },
  },
])('$name killed after a change and run again', ({ name, index, argv, last, least, prepare }) => {
  it('ends with the same files', { timeout: 600_000 }, async () => {
    const reference = await newLab();
    await prepare(reference);
    expect((await runCommand(argv(reference))).code).toBe(0);
    const expected = filesOf(reference, index);
    expect(Object.keys(expected).includes('var/lib/kubelet/config.yaml')).toBe(name === 'join');

    /** Whether change n was reached; checks that the final files are the same. */
    const crashAt = async (n: number): Promise<boolean> => {
      const lab = await newLab();
      await prepare(lab);
      const { killed, output } = await crash(n, argv(lab));
      if (!killed) {
        expect(output).toContain(last);
        return false;
      }
      const again = await runCommand(argv(lab));
      expect(again.code, `after change ${n}: ${again.stderr}`).toBe(0);
      // Changes of the previous run and of this one are not changes by others.
      expect(again.stderr, `after change ${n}`).not.toContain('PLAN_CHANGED');
      expect(filesOf(lab, index), `after change ${n}`).toEqual(expected);
      const third = await runCommand([...argv(lab), '--dry-run', '--exit-code']);
      expect(third.code, `after change ${n}: ${third.stdout}`).toBe(0);
      await close(lab);
      return true;
    };
    let reachedChange = 0;
    for (let reached = true; reached; reachedChange += 2 * STRIDE) {
      const results = await Promise.all([1, 1 + STRIDE].map((more) => crashAt(reachedChange + more)));
      reached = results.every(Boolean);
    }
    expect(reachedChange).toBeGreaterThanOrEqual(least);
  });
});
