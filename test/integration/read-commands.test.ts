import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { interrupted } from '../../src/base/errors.ts';
import type { HostTarget } from '../../src/fleet/host-target.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
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

describe('output formats of tables', () => {
  it('of Nodes', async () => {
    const status = (...args: string[]) => onCluster('dynamic', 'status', ...args);
    expect((await status('-o', 'name')).stdout).toBe('node/n1\nnode/n2\nnode/other\n');
    const [header = '', first = ''] = (await status('-o', 'wide')).stdout.split('\n');
    expect(header.split(/ {2,}/).slice(-4)).toEqual(['KUBELET', 'READY', 'ASSIGNED BY', 'REASON']);
    expect(first).toMatch(/^n1 .* no +/);
    expect((await status('--no-headers', 'n1')).stdout).toMatch(/^n1 +/);
    expect((await status('-o', 'jsonpath={range .items[?(@.node!="n2")]}{.node}:{.ready}{"\\n"}{end}')).stdout).toBe(
      'n1:false\nother:false\n',
    );
    // As kubectl reads the value.
    expect((await status('-o=jsonpath={.items[0].node}')).stdout).toBe('n1');
  });

  it('of Nodes, of which a watch prints only the changed ones', async () => {
    const parts: string[] = [];
    const stop = new AbortController();
    const annotate = (value: string | null): Promise<unknown> =>
      admin.patch({ apiVersion: 'v1', kind: 'Node', name: 'n2' }, 'merge', {
        metadata: { annotations: { [CONFIG_SOURCE_ANNOTATION]: value } },
      });
    const source = JSON.stringify({ configMap: { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet' } });
    const stdout = (text: unknown): void => {
      parts.push(String(text));
      if (parts.length === 1) void annotate(source);
      else stop.abort(interrupted('SIGINT'));
    };
    const { code } = await runCommand(['dynamic', 'status', '--watch', '--kubeconfig', lab.kubeconfig], {
      signal: stop.signal,
      services: ({ output }) => ({ output: { ...output, stdout } }),
    });
    await annotate(null);
    expect(code).toBe(130);
    expect(namesOf(parts[0] ?? '')).toEqual(['n1', 'n2', 'other']);
    expect(parts[1]).toMatch(/^n2 .* kube-system\/a/);
    expect(parts[1]).not.toMatch(/NODE|^(n1|other) /m);
  });

  it('of the hosts of a fleet file', async () => {
    const inventory = (...args: string[]) => runCommand(['fleet', 'inventory', '-f', fleetFile, ...args]);
    expect((await inventory('-o', 'name', '-l', 'gpu')).stdout).toBe('host/n2\n');
    expect((await inventory('--host', 'host/n2', '-o', 'name')).stdout).toBe('host/n2\n');
    expect((await inventory('-o', 'wide', '--no-headers', '--limit', 'host/n3')).stdout.trimEnd().split(/ {2,}/)).toEqual([
      'n3',
      'n3',
      '-',
      'worker',
      '-',
      'other',
      '-',
      'site=b,pool=core',
      '-',
    ]);
    expect((await inventory('-o', 'text')).stdout).toContain('NAME  ADDRESS');
    expect((await inventory('-o', "jsonpath={.hosts[*]['name','role']}")).stdout).toBe('n1 n2 n3 worker worker worker');
  });

  it('of tokens, without the secret in the name', async () => {
    const id = lab.token.reveal().slice(0, 6);
    expect((await onCluster('token', 'list', '-o', 'name')).stdout).toBe(`secret/bootstrap-token-${id}\n`);
    expect((await onCluster('token', 'list', '--no-headers')).stdout).toMatch(new RegExp(`^${id}\\.`));
    expect((await onCluster('token', 'list', '-o', 'jsonpath={.usages[*]}{"\\n"}')).stdout).toBe('authentication signing\n');
  });

  it('of CSRs without a row', async () => {
    expect((await onCluster('csr', 'list', '-o', 'name', '-l', 'gpu')).stdout).toBe('');
    expect((await onCluster('csr', 'list')).stdout).toBe('No certificate signing request is pending.\n');
    expect((await onCluster('csr', 'list', '-o', 'jsonpath={.kind}')).stdout).toBe('KubeletRequestList');
  });

  it('of images and of explanations', async () => {
    expect((await runCommand(['config', 'images', 'list', '-o', 'jsonpath={.images[0]}'])).stdout).toMatch(/kube-apiserver:v1\.36/);
    expect((await runCommand(['config', 'explain', 'maxPods', '-o', 'jsonpath={.path}'])).stdout).toBe('maxPods');
  });

  it.each([
    ['jsonpath', '-o jsonpath: the template is missing. For example:'],
    ['jsonpath={.items[x]}', '-o jsonpath: expected an index, a slice or a quoted key (character 9, at "x]}"). For example:'],
    [
      'go-template={{.}}',
      'option -o, --output <format>: invalid value "go-template={{.}}": templates of Go and template files are not supported',
    ],
    ['table', 'invalid value "table", must be one of text, wide'],
  ])('refuse -o %s before anything is read', async (format, message) => {
    const { code, stdout, stderr } = await runCommand(['fleet', 'inventory', '-f', '/does/not/exist', '-o', format]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  });

  it('report a template that does not fit the document', async () => {
    const { code, stderr } = await onCluster('dynamic', 'status', '-o', 'jsonpath={.items[7].node}');
    expect(code).toBe(2);
    expect(stderr).toContain('-o jsonpath: index 7 is out of bounds: the list has 3 entries (character 9, at "7].node}")');
  });
});
