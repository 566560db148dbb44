import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { HostTarget } from '../../src/fleet/host-target.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { startLab } from '../../src/lab/lab.ts';
import type { Lab } from '../../src/lab/lab-options.ts';
import { runCommand } from '../support/run-cli.ts';

let directory: string;
let lab: Lab;
let admin: Cluster;
let fleetFile: string;
const onCluster = (...args: string[]) => runCommand([...args, '--kubeconfig', lab.kubeconfig]);

const FLEET = `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
baseline: {labels: {site: a}}
groups:
  - {name: gpu, labels: {gpu: nvidia}}
hosts:
  - {name: n1, labels: {pool: edge}}
  - {name: n2, groups: [gpu], labels: {pool: core}}
  - {name: n3, nodeName: other, labels: {pool: core, site: b}}
`;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'ka-reads-'));
  lab = await startLab({ directory, hosts: 1 });
  admin = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
  for (const [name, labels] of [
    ['n1', { pool: 'edge' }],
    ['n2', { pool: 'core', gpu: '' }],
    ['other', { pool: 'core' }],
  ] as const)
    await admin.create({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
  fleetFile = join(directory, 'fleet.yaml');
  writeFileSync(fleetFile, FLEET);
});
afterAll(async () => {
  await admin?.close();
  await lab?.close();
  rmSync(directory, { recursive: true, force: true });
});

/** The first column of a table, without the header. */
const namesOf = (stdout: string): readonly string[] => {
  const rows = stdout.trimEnd().split('\n').slice(1);
  return rows.flatMap((row) => (/^\S+ {2,}/.test(row) ? [row.split(/ +/)[0] ?? ''] : []));
};

describe('the selection of Nodes', () => {
  it.each<[readonly string[], readonly string[]]>([
    [[], ['n1', 'n2', 'other']],
    [
      ['node/n2', 'n1'],
      ['n2', 'n1'],
    ],
    [
      ['-l', 'pool=core'],
      ['n2', 'other'],
    ],
    [
      ['-l', 'pool in (core,edge),!gpu'],
      ['n1', 'other'],
    ],
    [['--selector', 'gpu'], ['n2']],
  ])('dynamic status %j', async (args, expected) => {
    const { code, stdout } = await onCluster('dynamic', 'status', ...args);
    expect(code).toBe(0);
    expect(namesOf(stdout)).toEqual(expected);
  });

  it('takes the Nodes of the hosts of a fleet file', async () => {
    const { stdout } = await onCluster('dynamic', 'status', '-f', fleetFile, '--limit', 'n[2:3]');
    expect(namesOf(stdout)).toEqual(['n2', 'other']);
    expect(namesOf((await onCluster('dynamic', 'status', '-f', fleetFile, '--group', 'gpu')).stdout)).toEqual(['n2']);
  });
});

describe('the selection of hosts of a fleet file', () => {
  it.each<[readonly string[], readonly string[]]>([
    [
      ['-l', 'pool=core'],
      ['n2', 'n3'],
    ],
    [
      ['-l', 'site=a'],
      ['n1', 'n2'],
    ],
    [['-l', 'gpu', '--limit', '!n1'], ['n2']],
  ])('fleet inventory %j', async (args, expected) => {
    const { code, stdout } = await runCommand(['fleet', 'inventory', '-f', fleetFile, ...args]);
    expect(code).toBe(0);
    expect(namesOf(stdout)).toEqual(expected);
  });

  it('is the same in commands that connect to the hosts', async () => {
    const asked: string[] = [];
    const services = () => ({
      connectHost: async (target: HostTarget) => {
        asked.push(target.member?.name ?? '');
        throw new Error('connected');
      },
    });
    await runCommand(['fleet', 'exec', '-f', fleetFile, '-l', 'pool=edge', '--', 'true'], { services });
    expect(asked).toEqual(['n1']);
  });

  it('is refused as an argument, with the options that select hosts', async () => {
    expect(await runCommand(['fleet', 'status', 'n1', '-f', fleetFile])).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'fleet status: too many arguments: expected 0, got 1. Select hosts with --limit or --selector. See kubeletadm fleet status --help. [USAGE]\n',
    });
  });
});
