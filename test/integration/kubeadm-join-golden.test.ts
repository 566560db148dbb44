import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { Secret } from '../../src/base/text/secret.ts';
import type { PlanDocument } from '../../src/host/plan/document.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { BOOTSTRAP_GROUP } from '../../src/kubeadm/cluster-objects/bootstrap-rbac.ts';
import { clusterInfoMap, clusterInfoRbac } from '../../src/kubeadm/cluster-objects/cluster-info.ts';
import { kubeletConfigRbac } from '../../src/kubeadm/cluster-objects/kubelet-config-map.ts';
import { kubeadmConfigRbac } from '../../src/kubeadm/phases/upload-config.ts';
import { tokenSecret } from '../../src/kubeadm/token/token-secret.ts';
import { caPinsOf } from '../../src/x509/ca-pin.ts';
import { runCommand } from '../support/run-cli.ts';

const FOLDER = fileURLToPath(new URL('../fixtures/kubeadm-1.36.2/join', import.meta.url));
const CASES = readdirSync(FOLDER).filter((name) => existsSync(join(FOLDER, name, 'input.yaml')));

/** The path on the host of a file of a recording. */
const PATHS: Readonly<Record<string, string>> = {
  'bootstrap-kubelet.conf': '/etc/kubernetes/bootstrap-kubelet.conf',
  'ca.crt': '/etc/kubernetes/pki/ca.crt',
  'config.yaml': '/var/lib/kubelet/config.yaml',
  'instance-config.yaml': '/var/lib/kubelet/instance-config.yaml',
  'kubeadm-flags.env': '/var/lib/kubelet/kubeadm-flags.env',
};

/** Values that the recordings contain. */
const TOKEN = 'fedcba.fedcba9876543210';
const temporary = mkdtempSync(join(tmpdir(), 'kubeletadm-join-golden-'));
let api: LabApiServer;

beforeAll(async () => {
  api = await startApiServer({ controllers: ['bootstrap-signer'] });
  const token = { token: new Secret(TOKEN), usages: ['signing', 'authentication'], groups: [String(BOOTSTRAP_GROUP.name)] };
  api.put(
    ...parseAllDocuments(readFileSync(join(FOLDER, 'cluster.yaml'), 'utf8')).flatMap(
      (document) => (document.toJS() as KubeObject | null) ?? [],
    ),
    ...kubeletConfigRbac('kubelet-config'),
    ...kubeadmConfigRbac(),
    ...clusterInfoRbac(),
    clusterInfoMap({ server: api.url, caPem: api.caPem }),
    tokenSecret(token, new Date()),
  );
});

afterAll(async () => {
  await api.close();
  rmSync(temporary, { recursive: true, force: true });
});

describe('join writes the same files as kubeadm 1.36.2', () => {
  it.each(CASES)('%s', async (name) => {
    const recording = parse(readFileSync(join(FOLDER, name, 'expected.yaml'), 'utf8')) as { files: Readonly<Record<string, string>> };
    const { code, stdout, stderr } = await dryRun(name);
    expect(code, stderr).toBe(0);
    const written = filesOf(stdout);
    for (const [file, text] of Object.entries(recording.files)) {
      const ours = written.get(PATHS[file] as string);
      expect(readable(file, ours), file).toEqual(readable(file, atThisCluster(text)));
    }
  });

  it('warns about content of kubeadm-config from a newer kubeadm', async () => {
    const found = api.get('v1', 'ConfigMap', 'kubeadm-config', 'kube-system') as KubeObject;
    const { resourceVersion: _, ...metadata } = found.metadata;
    const text = (found.data as Readonly<Record<string, string>>).ClusterConfiguration as string;
    const newer = { ...(parse(text) as object), clusterName: 'prod', brandNew: { on: true }, featureGates: { BrandNew: true } };
    api.put({ ...found, metadata, data: { ClusterConfiguration: stringify(newer) } });

    const { code, stdout, stderr } = await dryRun('01-worker');
    api.put({ ...found, metadata });

    expect(code, stderr).toBe(0);
    expect(filesOf(stdout).get(PATHS['bootstrap-kubelet.conf'] as string)).toContain('    cluster: prod\n');
    const warnings = (JSON.parse(stdout) as PlanDocument).warnings.filter(({ code: id }) => String(id).startsWith('CONFIG_UNKNOWN'));
    expect(warnings.map(({ field }) => field)).toEqual(['brandNew', 'featureGates.BrandNew']);
  });
});

async function dryRun(name: string) {
  const input = readFileSync(join(FOLDER, name, 'input.yaml'), 'utf8')
    .replaceAll('@PATCHES@', join(FOLDER, name, 'patches'))
    .replaceAll('@ENDPOINT@', new URL(api.url).host)
    .replaceAll('sha256:@PIN@', String(caPinsOf(api.caPem)?.[0]));
  const config = join(temporary, 'input.yaml');
  writeFileSync(config, input);
  return runCommand(['join', '--config', config, '--rootfs', join(temporary, name), '--dry-run', '-o', 'json']);
}

function filesOf(stdout: string): ReadonlyMap<string, string> {
  const changes = (JSON.parse(stdout) as PlanDocument).hosts[0]?.changes ?? [];
  return new Map(
    changes.flatMap(({ path, content }) => (typeof path === 'string' && typeof content === 'string' ? [[path, content]] : [])),
  );
}

/** The recording with its placeholders replaced; the plan shows no token. */
function atThisCluster(text: string): string {
  return text
    .replaceAll('@ENDPOINT@', new URL(api.url).host)
    .replaceAll("'@CA@'", Buffer.from(api.caPem).toString('base64'))
    .replaceAll('@CA@\n', api.caPem)
    .replaceAll(TOKEN, '"[secret]"');
}

/** Parses YAML files, and returns other files unchanged. */
function readable(file: string, text: string | undefined): unknown {
  if (text === undefined || file === 'ca.crt' || file.endsWith('.env')) return text;
  return parse(text.replace(/token: \[secret\]$/m, 'token: "[secret]"'));
}
