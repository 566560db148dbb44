import { describe, expect, it } from 'vitest';
import type { PayloadNode } from '../../../../src/dynamic/agent/payload-changes.ts';
import { differingFields, expectedConfigz, preparePayload } from '../../../../src/dynamic/agent/prepare-payload.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { parseHostFile } from '../../../../src/kubelet/effective/running-config.ts';

const catalogue = await loadCatalogue();
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';
const identity = { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet', uid: 'u', resourceVersion: '1' };
const NODE: PayloadNode = {
  name: 'node-1',
  directory: '/agent',
  group: 'edge',
  minor: 36,
  catalogue,
  local: { path: '/var/lib/kubelet/config.yaml', text: `${HEADER}maxPods: 40\nclusterDNS: [10.96.0.10]\nclusterDomain: cluster.local\n` },
  flags: [],
  dropIns: [],
  running: null,
  cgroupVersion: 2,
};
const ANYTHING = { allow: 'unsafe', isDrained: false } as const;
const prepare = (
  data: Readonly<Record<string, string>>,
  over: Partial<PayloadNode> = {},
  policy: Parameters<typeof preparePayload>[2] = ANYTHING,
) => preparePayload({ identity, data }, { ...NODE, ...over }, policy);

describe('a payload', () => {
  it('replaces the local configuration', () => {
    const { candidate, files, refusal } = prepare({ kubelet: `${HEADER}maxPods: 50\n` });
    expect(refusal).toBeNull();
    expect(files?.['kubelet.yaml']).toContain('maxPods: 50');
    expect(files?.['kubelet.yaml']).not.toContain('10.96.0.10');
    expect(candidate.hash).toMatch(/^[0-9a-f]{64}$/);
    expect(candidate.changes).toContain('maxPods from 40 to 50');
  });

  it('records the fields that an overlay and its layers set', () => {
    expect(prepare({ kubelet: `${HEADER}maxPods: 50\n` }).sets).toBeNull();
    expect(prepare({ kubelet: `${HEADER}maxPods: 50\n`, 'kubelet.group.edge': `${OVERLAY}podPidsLimit: 7\n` }).sets).toBeNull();
    const { sets, places } = prepare({
      kubelet: `${OVERLAY}maxPods: 50\nclusterDomain: null\n`,
      'kubelet.group.edge': `${OVERLAY}evictionHard: {memory.available: 1Gi}\n`,
      'kubelet.group.other': `${OVERLAY}podPidsLimit: 7\n`,
    });
    expect(sets).toEqual(['maxPods', 'clusterDomain', 'evictionHard[memory.available]']);
    expect(places).toMatchObject({ maxPods: 'kubelet:3', 'evictionHard[memory.available]': 'kubelet.group.edge:3' });
    expect(prepare({ kubelet: `${OVERLAY}maxPods: 50\n`, 'kubelet.node.node-1': `${OVERLAY}\n\nmaxPods: 60\n` }).places.maxPods).toBe(
      'kubelet.node.node-1:5',
    );
  });

  it('has the same hash for the same content in another notation', () => {
    const hashes = [
      `${HEADER}maxPods: 50\n`,
      `# why\nmaxPods:   50 # pods\n${HEADER}`,
      '{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration","maxPods":50}',
    ].map((kubelet) => prepare({ kubelet }).candidate.hash);
    expect(new Set(hashes).size).toBe(1);
    expect(prepare({ kubelet: `${HEADER}maxPods: 51\n` }).candidate.hash).not.toBe(hashes[0]);
  });

  it('as an overlay changes the local configuration field by field; null removes a field', () => {
    const { files, candidate } = prepare({ kubelet: `${OVERLAY}evictionHard: {memory.available: 5%}\nmaxPods: null\n` });
    expect(files?.['kubelet.yaml']).toContain('- 10.96.0.10');
    expect(files?.['kubelet.yaml']).toContain('kind: KubeletConfiguration\n');
    expect(files?.['kubelet.yaml']).not.toContain('maxPods');
    expect(candidate.changes).toContain('maxPods from 40 to 110');
  });

  it('merges only the layers for this node and its group', () => {
    const data = {
      kubelet: `${HEADER}maxPods: 50\nkubeAPIQPS: 7\n`,
      'kubelet.group.edge': `${OVERLAY}maxPods: 60\nkubeAPIBurst: 71\n`,
      'kubelet.group.core': `${OVERLAY}maxPods: 99\n`,
      'kubelet.node.node-1': `${OVERLAY}maxPods: 70\n`,
    };
    const text = prepare(data).files?.['kubelet.yaml'] ?? '';
    expect(text).toMatch(/maxPods: 70\n/);
    expect(text).toMatch(/kubeAPIQPS: 7\n/);
    expect(text).toMatch(/kubeAPIBurst: 71\n/);
    expect(prepare(data, { name: 'node-2' }).files?.['kubelet.yaml']).toMatch(/maxPods: 60\n/);
    expect(prepare(data, { name: 'node-2', group: null }).files?.['kubelet.yaml']).toMatch(/maxPods: 50\n/);
    // A changed layer of another node must not restart this kubelet.
    const { 'kubelet.group.core': _, ...fewer } = data;
    expect(prepare(fewer).candidate.hash).toBe(prepare(data).candidate.hash);
  });

  it('includes the files that it references', () => {
    const { files } = prepare({ kubelet: `${HEADER}resolvConf: resolv.conf\n`, 'resolv.conf': 'nameserver 10.0.0.1\n', other: 'x' });
    expect(Object.keys(files ?? {}).sort()).toEqual(['kubelet.yaml', 'resolv.conf']);
  });
});

describe('a payload is refused before the node is touched', () => {
  it.each([
    ['the key does not exist', { other: 'x' }, 'LOAD_FAILED', 'the ConfigMap has no key "kubelet" in data'],
    ['it is empty', { kubelet: '' }, 'LOAD_FAILED', 'kubelet is empty'],
    ['it is not a configuration', { kubelet: '{0xdeadbeef}' }, 'LOAD_FAILED', 'kubelet:1:'],
    ['kind is missing', { kubelet: 'apiVersion: kubelet.config.k8s.io/v1beta1\n' }, 'LOAD_FAILED', 'kind'],
    ['another kind', { kubelet: `${HEADER.replace('KubeletConfiguration', 'BogusKind')}` }, 'LOAD_FAILED', 'BogusKind'],
    ['another version', { kubelet: `${HEADER.replace('v1beta1', 'bogusversion')}` }, 'LOAD_FAILED', 'bogusversion'],
    ['it is not YAML', { kubelet: '{*' }, 'LOAD_FAILED', 'kubelet:1:'],
    ['a value of another type', { kubelet: `${HEADER}maxPods: many\n` }, 'LOAD_FAILED', 'maxPods'],
    ['a value out of range', { kubelet: `${HEADER}kubeAPIQPS: -1\n` }, 'VALIDATION_FAILED', 'kubeAPIQPS'],
    ['an unknown feature gate', { kubelet: `${HEADER}featureGates: {NoSuchGate: true}\n` }, 'VALIDATION_FAILED', 'NoSuchGate'],
    [
      'a value with which kubelets crash at startup',
      { kubelet: `${HEADER}evictionHard: {memory.available: lots}\n` },
      'VALIDATION_FAILED',
      'evictionHard',
    ],
    [
      'a layer that is not an overlay',
      { kubelet: HEADER, 'kubelet.node.node-1': `${HEADER}maxPods: 1\n` },
      'LOAD_FAILED',
      'kubelet.node.node-1',
    ],
    [
      'a file named like the manifest of the checkpoint',
      { kubelet: `${HEADER}resolvConf: manifest.json\n`, 'manifest.json': '{}' },
      'LOAD_FAILED',
      'manifest.json',
    ],
  ])('when %s', (_, data, code, cause) => {
    const { refusal, files } = prepare(data);
    expect(refusal?.code).toBe(code);
    expect(refusal?.cause).toContain(cause);
    expect(files).toBeNull();
  });

  it('accepts unknown and duplicate fields, as kubelets do', () => {
    expect(prepare({ kubelet: `${HEADER}noSuchField: 1\nmaxPods: 1\nmaxPods: 2\n` }).refusal).toBeNull();
    expect(prepare({ kubelet: HEADER }).refusal).toBeNull();
  });

  it('when the policy forbids it, unless the node is drained', () => {
    const data = { kubelet: `${OVERLAY}topologyManagerScope: pod\n` };
    const policy = { allow: 'new-pods-only', isDrained: false } as const;
    const { refusal } = prepare(data, {}, policy);
    expect(refusal?.code).toBe('NOT_ALLOWED');
    expect(refusal?.cause).toMatch(
      /^the changes of topologyManagerScope \(drain: .*\) need a drained node or --allow drain, but the agent of this node runs with --allow new-pods-only \(see dynamic enable --allow\)$/,
    );
    expect(prepare(data, {}, { ...policy, isDrained: true }).refusal).toBeNull();
    expect(prepare({ kubelet: `${OVERLAY}cgroupDriver: systemd\n` }, {}, { ...policy, isDrained: true }).refusal?.code).toBe('NOT_ALLOWED');
    expect(prepare({ kubelet: `${OVERLAY}kubeAPIQPS: 9\n` }, {}, { allow: 'safe', isDrained: false }).refusal).toBeNull();
  });
});

describe('a payload of several layers', () => {
  const layer = (name: string) => `allowedUnsafeSysctls: [${Array.from({ length: 1500 }, (_, i) => `${name}.number${i}.*`).join(', ')}]\n`;
  const labels = (name: string) =>
    `systemReserved: {${Array.from({ length: 1600 }, (_, i) => `hugepages-${name}-${i}: "1"`).join(', ')}}\n`;

  it('is refused when the result exceeds the size limit of a configuration', () => {
    const { refusal, files } = prepare({
      kubelet: `${HEADER}${layer('kernel')}`,
      'kubelet.group.edge': `${OVERLAY}${labels('a')}`,
      'kubelet.node.node-1': `${OVERLAY}kubeReserved: {${Array.from({ length: 600 }, (_, i) => `hugepages-b-${i}: "1"`).join(', ')}}\n`,
    });
    expect(files).toBeNull();
    expect(refusal).toEqual({
      code: 'LOAD_FAILED',
      cause: expect.stringMatching(/^the configuration has \d+ characters with its overlays; the limit is 65536$/),
    });
  });
});

describe('a flag', () => {
  it("that overrides the payload is reported, and configz is not expected to show the payload's value", () => {
    const flags = [{ name: 'max-pods', value: '77', source: '/etc/default/kubelet' }];
    const { candidate, files } = prepare({ kubelet: `${OVERLAY}maxPods: 50\nkubeAPIQPS: 9\n` }, { flags });
    const expected = expectedConfigz(parseHostFile({ path: 'kubelet.yaml', text: files?.['kubelet.yaml'] ?? '' }), {
      minor: 36,
      catalogue,
      flags,
      dropIns: [],
    });
    expect(expected).not.toHaveProperty('maxPods');
    expect(expected).toMatchObject({ kubeAPIQPS: 9 });
    expect(candidate.changes.join()).not.toContain('maxPods from 77 to 50');
    expect(candidate.changes).toContain('maxPods (desired 50, running 77) is overridden by --max-pods, /etc/default/kubelet');
  });
});

describe('a drop-in file of --config-dir', () => {
  const path = '/etc/kubernetes/kubelet.conf.d/50-kubeletadm-host.conf';
  const configDropIn = (fields: string) => ({ dropIns: [{ path, text: `${HEADER}${fields}` }] });

  it.each([
    ['an overlay', `${OVERLAY}maxPods: 50\nkubeAPIQPS: 9\n`],
    ['a complete configuration', `${HEADER}maxPods: 50\nkubeAPIQPS: 9\n`],
  ])('wins over the fields that it sets of %s, and the agent reports it', (_, kubelet) => {
    const { candidate, config, refusal } = prepare({ kubelet }, configDropIn('maxPods: 33\n'));
    expect(refusal).toBeNull();
    expect(config).toMatchObject({ maxPods: 33, kubeAPIQPS: 9 });
    expect(candidate.changes).toEqual(
      expect.arrayContaining([`maxPods (desired 50, running 33) is overridden by ${path}:3`, 'kubeAPIQPS from 50 to 9']),
    );
    expect(candidate.changes.join()).not.toMatch(/maxPods: /);
  });

  it('is not reported for fields that the ConfigMap does not set, or sets to the same value', () => {
    const reported = (kubelet: string, fields: string) =>
      prepare({ kubelet }, configDropIn(fields)).candidate.changes.filter((text) => text.includes('overridden'));
    expect(reported(`${OVERLAY}kubeAPIQPS: 9\n`, 'maxPods: 33\n')).toEqual([]);
    expect(reported(`${OVERLAY}maxPods: 33\n`, 'maxPods: 33\n')).toEqual([]);
  });

  it('does not make the agent expect a value that the kubelet cannot show', () => {
    const { files } = prepare({ kubelet: `${OVERLAY}maxPods: 50\nkubeAPIQPS: 9\n` }, configDropIn('maxPods: 33\n'));
    const configFile = parseHostFile({ path: 'kubelet.yaml', text: files?.['kubelet.yaml'] ?? '' });
    const expected = expectedConfigz(configFile, { minor: 36, catalogue, flags: [], ...configDropIn('maxPods: 33\n') });
    expect(expected).not.toHaveProperty('maxPods');
    expect(expected).toMatchObject({ kubeAPIQPS: 9 });
  });
});

describe('configz', () => {
  it('is compared with the fields of the payload only', () => {
    const options = { minor: 36, catalogue };
    const expected = { maxPods: 50, evictionHard: { 'memory.available': '5%' }, syncFrequency: '60s' };
    const shown = {
      maxPods: 50,
      evictionHard: { 'memory.available': '5%', 'nodefs.available': '10%' },
      syncFrequency: '1m0s',
      cgroupRoot: '/x',
    };
    expect(differingFields(shown, expected, options)).toEqual([]);
    expect(differingFields({ ...shown, maxPods: 110 }, expected, options)).toEqual(['maxPods']);
  });
});

describe('a payload for a kubelet whose rules are not all known', () => {
  it('is validated by the known rules, and the verdict names them', () => {
    const gate = `${HEADER}featureGates: {NewThing: true}\n`;
    expect(prepare({ kubelet: gate }).refusal).toMatchObject({ code: 'VALIDATION_FAILED' });
    // A newer kubelet may know the gate.
    expect(prepare({ kubelet: gate }, { kubeletMinor: 38 })).toMatchObject({
      refusal: null,
      warning: { code: 'KUBELET_RULES_OF_OTHER_MINOR', message: expect.stringContaining('Kubernetes 1.38') },
    });
    const refused = prepare({ kubelet: `${HEADER}port: -1\n` }, { minor: 17 });
    expect(refused.refusal?.cause).toMatch(/ \(Kubernetes 1\.17 is older .*startup checks by the rules of 1\.20\)$/);
    expect(prepare({ kubelet: `${HEADER}cpuCFSQuotaPeriod: 5ms\n` }, { minor: 17 }).refusal).toBeNull();
    expect(prepare({ kubelet: `${HEADER}maxPods: 5\n` }).warning).toBeNull();
  });
});
