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

    const objects = (recording.objects ?? recording.apiActions?.flatMap((action) => action.object ?? []) ?? []).filter((object) =>
      /kubelet-config$/.test(object.metadata.name),
    );
    expect(objects.map((object) => object.kind)).toEqual(['ConfigMap', 'Role', 'RoleBinding']);
    const ours = plan.cluster.changes.map((change) => change.object as unknown as KubeObjectLike);
    for (const object of objects)
      expect(parsed(ours.find((one) => one.kind === object.kind))).toEqual(withDifferences(parsed(object), input));
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
  if (object?.data?.kubelet !== undefined) copy.data = { kubelet: parse(object.data.kubelet) };
  return copy;
}

function withDifferences(object: Record<string, unknown>, input: string): Record<string, unknown> {
  const data = object.data as { kubelet?: Record<string, unknown> } | undefined;
  if (data?.kubelet !== undefined) for (const { when, field, ours } of WANTED_DIFFERENCES) if (when(input)) data.kubelet[field] = ours;
  return object;
}
