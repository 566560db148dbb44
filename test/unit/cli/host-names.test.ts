import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Argument, Command, Option } from 'commander';
import { afterAll, describe, expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import { targetName } from '../../../src/fleet/host-target.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';
import { allHelp } from '../../support/help-texts.ts';
import { type CliResult, runCommand } from '../../support/run-cli.ts';

const CA = Buffer.from('-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n').toString('base64');
const KUBECONFIG = `apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: ${CA}}}]
users: [{name: u, user: {token: abc}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`;
const FLEET = `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: admin.conf}
hosts:
  - {name: other, address: 192.0.2.1}
  - {name: second, address: 192.0.2.2, nodeName: node-two}
`;

/** What a command needs in addition to the name. A command without an entry needs nothing. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  'init phase': ['preflight'],
  join: [
    '192.0.2.9:6443',
    '--token',
    'abcdef.0123456789abcdef',
    '--discovery-token-unsafe-skip-ca-verification',
    '--kubeconfig',
    'KUBECONFIG',
  ],
  'join phase': ['preflight', '192.0.2.9:6443', '--token', 'abcdef.0123456789abcdef', '--discovery-token-unsafe-skip-ca-verification'],
  'reset phase': ['preflight'],
  apply: ['--yes'],
  'upgrade apply': ['v1.36.2', '--yes'],
  'upgrade apply phase': ['preflight', 'v1.36.2'],
  'upgrade node phase': ['preflight'],
  'certs renew': ['all'],
  'certs renew-kubelet': ['--kubeconfig', 'KUBECONFIG'],
  'kubeconfig user': ['--client-name', 'alice'],
  'config validate': ['FLEET'],
  validate: ['FLEET'],
  'csr list': ['--kubeconfig', 'KUBECONFIG'],
  'csr approve': ['--kubeconfig', 'KUBECONFIG'],
  'config from-node': ['--kubeconfig', 'KUBECONFIG'],
  'dynamic assign': ['--configmap', 'a/b', '--kubeconfig', 'KUBECONFIG'],
  'dynamic reset': ['--kubeconfig', 'KUBECONFIG'],
  'dynamic undo': ['--yes', '--kubeconfig', 'KUBECONFIG'],
  'dynamic status': ['--kubeconfig', 'KUBECONFIG'],
  'node explain': ['--kubeconfig', 'KUBECONFIG'],
  'dynamic history': ['--kubeconfig', 'KUBECONFIG'],
  drain: ['--kubeconfig', 'KUBECONFIG'],
  uncordon: ['--kubeconfig', 'KUBECONFIG'],
  'maintenance start': ['--kubeconfig', 'KUBECONFIG'],
  'maintenance end': ['--kubeconfig', 'KUBECONFIG'],
  'maintenance status': ['--kubeconfig', 'KUBECONFIG'],
  'dynamic gc': ['--kubeconfig', 'KUBECONFIG'],
  'controller install': ['--kubeconfig', 'KUBECONFIG', '--program', 'FLEET'],
  'controller uninstall': ['--kubeconfig', 'KUBECONFIG'],
  'dynamic enable': ['--kubeconfig', 'KUBECONFIG', '--program', 'FLEET'],
  'dynamic disable': ['--kubeconfig', 'KUBECONFIG'],
  undo: ['--yes'],
  'fleet apply': ['--yes'],
  'fleet exec': ['true'],
  'fleet reset': ['--yes'],
};

/** Commands that ask neither hosts nor the cluster, with a reason or a test of their own. */
const OFFLINE: Readonly<Record<string, string>> = {
  'plan show': 'reads a saved plan; selects its hosts with the function of --limit',
  'fleet plan show': 'reads a saved plan; selects its hosts with the function of --limit',
  'fleet inventory': 'see "the inventory" below',
  edit: 'opens an editor first; --limit selects the hosts with the function of apply',
};

/** Options for numbers of hosts, and for names that are declared here. */
const NO_NAMES = /^--(?:canary|serial|max-fail|max-unavailable|parallel|hosts|group)$/;
const NAMES = /\b(?:names? of (?:the )?(?:hosts?|Nodes?)|hosts?, reached over SSH|hosts? or Nodes?)\b/;

function isHostName(one: Argument | Option): boolean {
  if (!('long' in one)) return /^(?:hosts?|nodes?|host\|node)$/.test(one.name());
  if (NO_NAMES.test(one.long ?? '') || ['--fleet', '--file', '--node-name'].includes(one.long ?? '')) return false;
  return /<(?:hosts?|nodes?)>/.test(one.flags) || /^--(?:host|limit)\b/.test(one.long ?? '') || NAMES.test(one.description);
}

/** A place of the command line where the name of a host or a Node is written. */
interface Place {
  readonly path: string;
  readonly what: string;
  readonly fleet: string | undefined;
  readonly argv: (name: string) => readonly string[];
}

function placesOf({ path, command }: { readonly path: string; readonly command: Command }): readonly Place[] {
  const fleet = ['--fleet', '--file'].find((long) =>
    command.options.some((one) => one.long === long && /fleet file/.test(one.description)),
  );
  const options = command.options.filter(isHostName).map(({ long }) => ({ what: long ?? '', words: [long ?? ''] }));
  const args = command.registeredArguments.filter(isHostName).map((one) => ({ what: `<${one.name()}>`, words: [] }));
  return [...options, ...args].map(({ what, words }) => ({ path, what, fleet, argv: (name) => [...words, name] }));
}

const places = (await allHelp('10000')).flatMap(placesOf);

describe('names of hosts and Nodes', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ka-host-names-'));
  const [file, kubeconfig] = [join(directory, 'fleet.yaml'), join(directory, 'admin.conf')];
  writeFileSync(file, FLEET);
  writeFileSync(kubeconfig, KUBECONFIG);
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  /** Runs a command whose hosts and cluster record only what was asked for. */
  async function run(argv: readonly string[]): Promise<CliResult & { readonly asked: readonly string[] }> {
    const asked: string[] = [];
    const unreachable = (name: string): AppError => {
      asked.push(name);
      return new AppError({ code: 'HOST_UNREACHABLE', host: name, message: 'recorded' });
    };
    const cluster = fakeCluster({ objects: [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-two' } }] });
    const result = await runCommand(argv, {
      env: { XDG_STATE_HOME: join(directory, 'state') },
      services: (real) => ({
        connectHost: async (target) => {
          throw unreachable(targetName(target));
        },
        openHostKeys: async (ssh) => ({
          ...(await real.openHostKeys(ssh)),
          inspect: async ({ name }) => {
            throw unreachable(name);
          },
        }),
        connectCluster: async () => cluster,
        confirm: async () => true,
      }),
    });
    const nodes = cluster.calls.flatMap((call) => /^get Node (\S+)/.exec(call)?.[1] ?? []);
    return { ...result, asked: [...new Set([...asked, ...nodes])] };
  }

  it('are written in places with a fleet file', () => {
    expect(places.length).toBeGreaterThan(40);
    expect(places.filter(({ path, fleet }) => fleet === undefined && OFFLINE[path] === undefined)).toEqual([]);
  });

  it.each(places.filter(({ path }) => OFFLINE[path] === undefined))('$path $what', async ({ path, argv, fleet }) => {
    const others = (OTHERS[path] ?? []).map((word) => ({ KUBECONFIG: kubeconfig, FLEET: file })[word] ?? word);
    for (const name of ['second', 'node-two', 'node/node-two']) {
      const { asked, stderr } = await run([...path.split(' '), ...argv(name), ...others, fleet ?? '', file]);
      // The host, or its Node; a name of the host that is also tried as the name of a Node is followed by it.
      expect(['second', 'node-two'], `${name}: ${asked.join(', ')}: ${stderr}`).toContain(asked.at(-1));
      expect(asked).not.toContain('other');
    }
  });

  it('are refused if no host of the fleet file has them, and node/NAME is never an address', async () => {
    for (const argv of [
      ['dynamic', 'inspect', 'third'],
      ['dynamic', 'disable', 'third', '--kubeconfig', kubeconfig],
    ]) {
      const { code, asked, stderr } = await run([...argv, '--fleet', file]);
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/has no host (?:or nodeName )?third/) });
      expect(asked).not.toContain('third');
    }
    expect(await run(['reset', '--force', '--host', 'node/node-two'])).toMatchObject({
      code: 2,
      asked: [],
      stderr: expect.stringContaining('node/node-two names a Node, but the command connects to a host over SSH'),
    });
    // An address needs no fleet file.
    expect((await run(['certs', 'check', '--host', 'root@192.0.2.7:22', '--fleet', file])).asked).toEqual(['root@192.0.2.7:22']);
  });

  it('are those of hosts before those of Nodes, as in --limit', async () => {
    const swapped = join(directory, 'swapped.yaml');
    writeFileSync(swapped, FLEET.replace('name: second', 'name: node-two').replace('nodeName: node-two', 'nodeName: node-three'));
    const asked = async (...argv: readonly string[]): Promise<string | undefined> =>
      (await run([...argv, '--kubeconfig', kubeconfig, '--fleet', swapped])).asked.at(-1);
    for (const argv of [
      ['dynamic', 'assign', '--configmap', 'a/b'],
      ['dynamic', 'reset'],
      ['dynamic', 'history'],
      ['config', 'from-node'],
    ]) {
      expect(await asked(...argv, 'node-two'), argv.join(' ')).toBe('node-three');
      expect(await asked(...argv, 'node/node-two'), argv.join(' ')).toBe('node-two');
    }
  });

  it('select a host once', async () => {
    expect(await run(['certs', 'check', '--host', 'second', '--host', 'node-two', '--fleet', file])).toMatchObject({
      code: 2,
      asked: [],
      stderr: expect.stringContaining('the host second is given twice'),
    });
  });

  it('select the canary', async () => {
    expect((await run(['plan', '-f', file, '--canary', 'node-two'])).stderr).not.toContain('--canary');
    expect(await run(['plan', '-f', file, '--canary', 'third'])).toMatchObject({ code: 2 });
  });

  it('select the host in the inventory, which has the column NODE', async () => {
    const named = await Promise.all(['second', 'node-two'].map((name) => run(['fleet', 'inventory', '-f', file, '--host', name])));
    expect(named[1]?.stdout).toBe(named[0]?.stdout);
    const inventory = async (): Promise<string> => (await run(['fleet', 'inventory', '-f', file])).stdout;
    expect(await inventory()).toMatch(/^NAME .* GROUPS +NODE\n(?:other .*-\n)second .* node-two\n$/);
    writeFileSync(file, FLEET.replace(', nodeName: node-two', ''));
    expect(await inventory()).not.toContain('NODE');
    writeFileSync(file, FLEET);
  });
});
