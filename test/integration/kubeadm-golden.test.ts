import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { PlanDocument } from '../../src/core/plan/document.ts';
import { runCommand } from '../support/run-cli.ts';

/** What kubeadm 1.36.2 wrote for these inputs, and more of the same where the machine has it. */
const FOLDERS = [
  fileURLToPath(new URL('../fixtures/kubeadm-1.36.2/init', import.meta.url)),
  fileURLToPath(new URL('../../../shared/data/kubeadm-golden', import.meta.url)),
].filter((folder) => existsSync(folder));

interface Recording {
  readonly kubeletFiles: Readonly<Record<string, string>>;
  readonly objects?: readonly KubeObjectLike[];
  readonly apiActions?: readonly { readonly object?: KubeObjectLike }[];
}
interface KubeObjectLike {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
}

/** Wanted differences, by field of KubeletConfiguration: what kubeadm writes, what we write, and why. */
const WANTED_DIFFERENCES = [
  {
    field: 'rotateCertificates',
    when: (input: string) => /^rotateCertificates: false$/m.test(input),
    ours: false,
    reason: "kubeadm turns the user's false silently into true; it is kept, with a warning that renewals stop",
  },
] as const;

/** The objects that init makes without an API server to ask for its address. Tokens are masked in a plan; kube-proxy is an add-on. */
const OURS = /^kubeadm[:-](?!node-proxier)|kubelet-config$/;
const NAMES = [
  'ConfigMap kubelet-config',
  'Role kubeadm:kubelet-config',
  'RoleBinding kubeadm:kubelet-config',
  'ConfigMap kubeadm-config',
  'Role kubeadm:nodes-kubeadm-config',
  'RoleBinding kubeadm:nodes-kubeadm-config',
  'ClusterRole kubeadm:get-nodes',
  'ClusterRoleBinding kubeadm:get-nodes',
  'ClusterRoleBinding kubeadm:kubelet-bootstrap',
  'ClusterRoleBinding kubeadm:node-autoapprove-bootstrap',
  'ClusterRoleBinding kubeadm:node-autoapprove-certificate-rotation',
  'ClusterRoleBinding kubeadm:apiserver-kubelet-client',
];

const temporary = mkdtempSync(join(tmpdir(), 'kubeletadm-golden-'));
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

describe.each(FOLDERS)('init writes what kubeadm 1.36.2 writes: %s', (folder) => {
  const cases = readdirSync(folder).filter((name) => existsSync(join(folder, name, 'input.yaml')));

  it.each(cases)('%s', async (name) => {
    const input = readFileSync(join(folder, name, 'input.yaml'), 'utf8').replaceAll('@PATCHES@', join(folder, name, 'patches'));
    const recording = parse(readFileSync(join(folder, name, 'expected.yaml'), 'utf8')) as Recording;
    const config = join(temporary, `${name}.yaml`);
    writeFileSync(config, input);

    const { code, stdout, stderr } = await runCommand([
      'init',
      '--config',
      config,
      '--rootfs',
      join(temporary, name),
      '--dry-run',
      '-o',
      'json',
    ]);

    expect(code, stderr).toBe(0);
    const plan = JSON.parse(stdout) as PlanDocument;
    const changes = plan.hosts[0]?.changes ?? [];
    const written = (file: string): string => String(changes.find((change) => change.path === `/var/lib/kubelet/${file}`)?.content);
    expect(written('kubeadm-flags.env')).toBe(recording.kubeletFiles['kubeadm-flags.env']);
    expect(written('instance-config.yaml')).toBe(recording.kubeletFiles['instance-config.yaml']);
    expect(parse(written('config.yaml'))).toEqual(expectedConfig(recording.kubeletFiles['config.yaml'] as string, input));

    const recorded = recording.objects ?? recording.apiActions?.flatMap((action) => action.object ?? []) ?? [];
    const objects = recorded.filter(({ metadata }) => OURS.test(metadata.name));
    const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(names).toEqual(expect.arrayContaining(recording.apiActions === undefined ? NAMES.slice(0, 3) : NAMES));
    const ours = plan.cluster.changes.map((change) => change.object as unknown as KubeObjectLike);
    for (const { kind, metadata, ...object } of objects) {
      const one = ours.find((each) => each.kind === kind && each.metadata.name === metadata.name);
      expect(parsed(one)).toEqual(withDifferences(parsed({ kind, metadata, ...object }), input));
    }
    for (const { when, field } of WANTED_DIFFERENCES)
      if (when(input)) expect(plan.warnings.map((warning) => warning.field)).toContain(field);
  });
});

function expectedConfig(text: string, input: string): Record<string, unknown> {
  const config = parse(text) as Record<string, unknown>;
  for (const { when, field, ours } of WANTED_DIFFERENCES) if (when(input)) config[field] = ours;
  return config;
}

/** The object with the YAML inside it read. The hash is over the text, so it goes by its presence where the text may differ. */
function parsed(object: KubeObjectLike | undefined): Record<string, unknown> {
  const copy = structuredClone(object) as unknown as Record<string, unknown>;
  if (object?.data !== undefined) copy.data = Object.fromEntries(Object.entries(object.data).map(([key, text]) => [key, parse(text)]));
  return copy;
}

function withDifferences(object: Record<string, unknown>, input: string): Record<string, unknown> {
  const data = object.data as { kubelet?: Record<string, unknown> } | undefined;
  if (data?.kubelet !== undefined) for (const { when, field, ours } of WANTED_DIFFERENCES) if (when(input)) data.kubelet[field] = ours;
  return object;
}
