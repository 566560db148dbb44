import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseSource } from '../../../../src/codec/source.ts';
import { encodeYaml } from '../../../../src/codec/yaml-encode.ts';
import { profileDefaults } from '../../../../src/kubeadm/render/profile-defaults.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { decodeKubeletConfiguration } from '../../../../src/kubelet/documents/decode.ts';
import { parseCommandLine } from '../../../../src/kubelet/flags/command-line.ts';
import type { MigrateOptions } from '../../../../src/kubelet/migrate/migrate-fields.ts';
import { REMOVED_FLAGS } from '../../../../src/kubelet/migrate/migrate-flags.ts';
import { type KubeletMigration, lossyStepsError, migrateKubelet, stepText } from '../../../../src/kubelet/migrate/migrate-kubelet.ts';

const catalogue = await loadCatalogue();
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

function migrate(
  text: string,
  minors: readonly [number, number],
  flags: readonly string[] = [],
  change: Partial<MigrateOptions> = {},
): KubeletMigration {
  const [from, to] = minors;
  const line = parseCommandLine(flags, { catalogue, minor: from });
  return migrateKubelet(text, 'kubelet.yaml', { from, to, catalogue, flags: line.flags, keepDefaults: false, ...change });
}

/** The steps, without changed defaults. */
function steps(migration: KubeletMigration): readonly string[] {
  return migration.steps.filter(({ did }) => did !== 'changes').map((step) => `${step.lossy ? 'LOSSY ' : ''}${stepText(step)}`);
}

function body(migration: KubeletMigration): string {
  expect(migration.text.startsWith(HEADER)).toBe(true);
  return migration.text.slice(HEADER.length);
}

const FLAGS = [
  '--container-runtime=remote',
  '--container-runtime-endpoint=unix:///run/containerd/containerd.sock',
  '--pod-infra-container-image=k8s.gcr.io/pause:3.5',
  '--max-pods=70',
  '--node-ip=10.0.0.5',
  '--node-labels=pool=a',
  '--feature-gates=NodeSwap=true,SeccompDefault=true',
  '--network-plugin=cni',
  '--kube-reserved=cpu=100m,memory=1Gi',
  '--v=2',
];

describe('migrateKubelet', () => {
  it('migrates a file and its flags from 1.22 to 1.36, keeps comments and reports each step', async () => {
    const golden = (name: string): string => path.join(import.meta.dirname, 'golden', name);
    const migration = migrate(readFileSync(golden('workers.input.yaml'), 'utf8'), [22, 36], FLAGS);
    await expect(migration.text).toMatchFileSnapshot(golden('workers.output.yaml'));
    await expect(`${migration.steps.map(stepText).join('\n')}\n`).toMatchFileSnapshot(golden('workers.steps.txt'));
    expect(migration.flags.map(({ name, value }) => `${name}=${value}`)).toEqual(['node-ip=10.0.0.5', 'node-labels=pool=a']);
    expect(lossyStepsError(migration.steps)).toBeNull();
    expect(migration.problems.filter(({ severity }) => severity !== 'warning')).toEqual([]);
  });

  it('keeps a text byte for byte if no field changes', () => {
    const text = `# odd\n${HEADER}'maxPods':   0x3c\nclusterDNS:   [ 10.0.0.1 ]\nkubeReserved: { "cpu": '1' }\n`;
    expect(migrate(text, [27, 36]).text).toBe(text);
  });

  it('a second run changes nothing', () => {
    const first = migrate(`${HEADER}maxPods: 5\nfeatureGates: {CSIMigration: true, NodeSwap: true}\n`, [24, 36], ['--v=4']);
    const second = migrate(
      first.text,
      [36, 36],
      first.flags.map(({ name, value }) => `--${name}=${value}`),
    );
    expect(second.text).toBe(first.text);
    expect(second.steps).toEqual([]);
  });

  it.each<[string, string, readonly [number, number], string, readonly string[]]>([
    [
      'a removed field with its default',
      'logging: {sanitization: false}\nmaxPods: 5\n',
      [22, 24],
      'maxPods: 5\n',
      ['removed: logging.sanitization: unknown to a 1.24 kubelet, removed in 1.24'],
    ],
    [
      'a removed field',
      'logging:\n  sanitization: true\n  format: json\n',
      [22, 24],
      'logging:\n  format: json\n',
      ['LOSSY removed: logging.sanitization: unknown to a 1.24 kubelet, removed in 1.24: true cannot be kept'],
    ],
    [
      'a field of newer kubelets that is null',
      'podLogsDir: null\nmaxPods: 5\n',
      [36, 28],
      'maxPods: 5\n',
      ['removed: podLogsDir: unknown to a 1.28 kubelet'],
    ],
    [
      'a field of newer kubelets, in a downgrade',
      'imageMaximumGCAge: 24h\n',
      [36, 28],
      '',
      ['LOSSY removed: imageMaximumGCAge: unknown to a 1.28 kubelet, added in 1.29: 24h0m0s cannot be kept'],
    ],
    [
      'a changed type, in a downgrade',
      'logging:\n  flushFrequency: 10s # slow disk\n',
      [28, 27],
      'logging:\n  flushFrequency: 10000000000 # slow disk\n',
      ['rewritten: logging.flushFrequency: 10s was converted to 10000000000 for a 1.27 kubelet'],
    ],
    [
      'a changed type',
      'logging:\n  flushFrequency: 10000000000\n',
      [27, 28],
      'logging:\n  flushFrequency: 10s\n',
      ['rewritten: logging.flushFrequency: 10000000000 was converted to 10s for a 1.28 kubelet'],
    ],
    [
      'a removed value',
      'memorySwap:\n  swapBehavior: UnlimitedSwap\n',
      [29, 30],
      'memorySwap:\n  swapBehavior: UnlimitedSwap\n',
      ['LOSSY kept: memorySwap.swapBehavior: a 1.30 kubelet does not support UnlimitedSwap; supported values: LimitedSwap, NoSwap'],
    ],
    [
      'a field that the old kubelet ignored',
      'seccompDefault: true\n',
      [21, 30],
      'seccompDefault: true\n',
      ['kept: seccompDefault: unknown to a 1.21 kubelet: the field was added in 1.22; a 1.30 kubelet uses the field'],
    ],
    [
      'an unknown field',
      'maxPodz: 5\nmaxPods: 5\n',
      [21, 30],
      'maxPods: 5\n',
      ['LOSSY removed: maxPodz: unknown field; neither of the two kubelet versions reads the field'],
    ],
    [
      'anchors',
      'evictionSoft: &e {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: 1m}\nlogging: {sanitization: false}\nevictionHard: *e\n',
      [23, 24],
      'evictionSoft: &e {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: 1m}\nevictionHard: *e\n',
      ['removed: logging.sanitization: unknown to a 1.24 kubelet, removed in 1.24'],
    ],
    [
      'wide indents',
      'logging:\n    sanitization: false\n    format: json\nclusterDNS:\n    - 10.0.0.1\n',
      [22, 24],
      'logging:\n    format: json\nclusterDNS:\n    - 10.0.0.1\n',
      ['removed: logging.sanitization: unknown to a 1.24 kubelet, removed in 1.24'],
    ],
  ])('%s', (_, text, minors, output, expected) => {
    const migration = migrate(`${HEADER}${text}`, minors);
    expect(body(migration)).toBe(output);
    expect(steps(migration)).toEqual(expected);
  });

  it.each<[string, boolean, readonly [number, number], string | null]>([
    ['CSIMigration', true, [25, 36], 'removed: featureGates.CSIMigration: the gate was removed in 1.27; the feature is always on'],
    [
      'CSIMigration',
      false,
      [24, 36],
      'LOSSY removed: featureGates.CSIMigration: the gate was removed in 1.27; the feature is always on: false cannot be kept',
    ],
    [
      'DynamicKubeletConfig',
      true,
      [22, 36],
      'LOSSY removed: featureGates.DynamicKubeletConfig: the gate was removed in 1.26; the feature was removed too: true cannot be kept',
    ],
    ['NodeSwap', true, [28, 36], 'removed: featureGates.NodeSwap: locked to true since 1.34'],
    ['NodeSwap', false, [28, 36], 'LOSSY removed: featureGates.NodeSwap: locked to true since 1.34: the kubelet rejects false'],
    ['NodeSwap', false, [28, 30], null],
    ['NodeSwap', true, [30, 21], 'LOSSY removed: featureGates.NodeSwap: unknown to a 1.21 kubelet: added in 1.22'],
    ['NodeSwap', false, [30, 21], 'removed: featureGates.NodeSwap: unknown to a 1.21 kubelet: added in 1.22'],
    ['AllAlpha', false, [28, 30], null],
    ['NoSuchGate', true, [28, 30], 'LOSSY removed: featureGates.NoSuchGate: no kubelet has this gate'],
  ])('gate %s: %s', (name, value, minors, step) => {
    const migration = migrate(`${HEADER}maxPods: 5\nfeatureGates:\n  ${name}: ${value}\n`, minors);
    expect(steps(migration)).toEqual(step === null ? [] : [step]);
    expect(body(migration)).toBe(step === null ? `maxPods: 5\nfeatureGates:\n  ${name}: ${value}\n` : 'maxPods: 5\n');
  });

  it.each<[string, readonly string[], readonly [number, number], readonly string[], readonly string[]]>([
    [
      'a field of both minors',
      ['--max-pods=6'],
      [24, 36],
      [],
      ['moved: --max-pods: to maxPods: 6 instead of 5: the flag overrode the file'],
    ],
    ['a flag with the value of the file', ['--max-pods=5'], [24, 36], [], ['moved: --max-pods: to maxPods: 5']],
    [
      'a flag whose field does not exist yet in the new kubelet',
      ['--register-with-taints=a=b:NoSchedule'],
      [21, 22],
      ['register-with-taints=a=b:NoSchedule'],
      [],
    ],
    [
      'a flag that became a field',
      ['--register-with-taints=a=b:NoSchedule'],
      [22, 23],
      [],
      ['moved: --register-with-taints: to registerWithTaints: [{key: a, value: b, effect: NoSchedule}]'],
    ],
    [
      'an invalid value',
      ['--max-pods=many'],
      [24, 36],
      ['max-pods=many'],
      ['LOSSY kept: --max-pods: no kubelet accepts the value: must be an integer, not the string "many"'],
    ],
    [
      'a renamed flag',
      ['--experimental-bootstrap-kubeconfig=/b'],
      [22, 23],
      ['bootstrap-kubeconfig=/b'],
      ['rewritten: --experimental-bootstrap-kubeconfig: unknown to a 1.23 kubelet, removed in 1.23: renamed to --bootstrap-kubeconfig'],
    ],
    [
      'dockershim',
      ['--container-runtime=docker', '--network-plugin=cni'],
      [23, 27],
      [],
      [
        'LOSSY removed: --container-runtime: unknown to a 1.27 kubelet, removed in 1.27: all runtimes are remote since 1.24',
        'LOSSY removed: --network-plugin: unknown to a 1.27 kubelet, removed in 1.24: used only by dockershim, removed in 1.24: networks and images are configured in the container runtime',
      ],
    ],
    [
      'a removed cloud provider',
      ['--cloud-provider=aws'],
      [26, 27],
      ['cloud-provider=aws'],
      [
        "LOSSY kept: --cloud-provider: a 1.27 kubelet has no in-tree cloud provider aws: 1.26 was the last. Use cloud-provider 'external' with a cloud controller manager",
      ],
    ],
    [
      'an unknown flag',
      ['--nonsense=1'],
      [26, 27],
      ['nonsense=1'],
      ['LOSSY kept: --nonsense: a 1.27 kubelet has no flag --nonsense. Check the spelling; kubelet --help lists the flags'],
    ],
    [
      'a flag of newer kubelets, in a downgrade',
      ['--config-dir=/d'],
      [30, 24],
      [],
      ['LOSSY removed: --config-dir: unknown to a 1.24 kubelet: added in 1.28'],
    ],
  ])('%s', (_, flags, minors, kept, expected) => {
    const migration = migrate(`${HEADER}maxPods: 5\n`, minors, flags);
    expect(steps(migration)).toEqual(expected);
    expect(migration.flags.map(({ name, value }) => `${name}=${value}`)).toEqual(kept);
  });

  it('keeps an empty flag if the new kubelet replaces an empty field by its default', () => {
    const old = migrate(HEADER, [20, 21], ['--resolv-conf=']);
    expect([body(old), old.flags]).toEqual(['', [{ name: 'resolv-conf', value: '' }]]);
    expect(steps(old)).toEqual(['kept: --resolv-conf: a 1.21 kubelet replaces "" in the field resolvConf by its default']);
    const newer = migrate(HEADER, [20, 23], ['--resolv-conf=']);
    expect([body(newer), newer.flags]).toEqual(['resolvConf: ""\n', []]);
  });

  it('reports the effect of a flag that became a field', () => {
    const { steps: reported } = migrate(HEADER, [36, 36], ['--node-status-update-frequency=20s', '--tls-cert-file=node.crt']);
    expect(reported.map(stepText)).toEqual([
      'moved: --node-status-update-frequency: to nodeStatusUpdateFrequency: 20s',
      'moved: --tls-cert-file: to tlsCertFile: node.crt',
      'changes: tlsCertFile: node.crt is a relative path. In the flag, the path was relative to the working directory of the kubelet; in the field, it is relative to the directory of the configuration file',
      'changes: nodeStatusReportFrequency: the effective value is 5m0s in 1.36, 20s in 1.36 (live change: safe)',
    ]);
  });

  it('refuses a flag with which the old kubelet did not start', () => {
    expect(steps(migrate(HEADER, [25, 36], ['--network-plugin=cni']))).toEqual([
      'LOSSY removed: --network-plugin: a 1.25 kubelet has no such flag and does not start with it',
    ]);
  });

  it('explains each removed flag without a field', () => {
    const unsaid = [...catalogue.flags.values()].filter(
      ({ flag, removedIn, field }) => removedIn !== null && removedIn > 20 && field === null && !REMOVED_FLAGS.has(flag),
    );
    expect(unsaid.map(({ flag }) => flag)).toEqual([]);
    expect([...REMOVED_FLAGS.keys()].filter((name) => !catalogue.flags.has(name))).toEqual([]);
  });

  it('reports changed defaults, and keeps the old values on request', () => {
    const text = `${HEADER}kubeAPIQPS: 20\n`;
    const outcome = migrate(text, [26, 27]).steps.map(({ did, what }) => `${did} ${what}`);
    expect(outcome).toEqual(['changes eventBurst', 'changes eventRecordQPS', 'changes kubeAPIBurst', 'changes memoryThrottlingFactor']);
    const pinned = migrate(text, [26, 27], [], { keepDefaults: true });
    expect(body(pinned)).toBe('kubeAPIQPS: 20\neventBurst: 10\neventRecordQPS: 5\nkubeAPIBurst: 10\nmemoryThrottlingFactor: 0.8\n');
  });

  it('reports a value that means something else', () => {
    const stepsOf = (value: number, minors: readonly [number, number]) =>
      migrate(`${HEADER}eventRecordQPS: ${value}\n`, minors)
        .steps.filter(({ what }) => what === 'eventRecordQPS')
        .map(({ message }) => message);
    expect(stepsOf(0, [36, 37])).toEqual(['0 means unlimited events for a 1.37 kubelet, but 5 events per second for a 1.36 kubelet']);
    expect(stepsOf(0, [37, 36])).toEqual(['0 means 5 events per second for a 1.36 kubelet, but unlimited events for a 1.37 kubelet']);
    expect(stepsOf(0, [35, 36])).toEqual([]);
    expect(stepsOf(5, [36, 37])).toEqual([]);
  });

  it('writes complete eviction thresholds', () => {
    const pinned = migrate(HEADER, [29, 30], [], { keepDefaults: true });
    expect(body(pinned)).toBe(
      'evictionHard:\n  imagefs.available: 15%\n  memory.available: 100Mi\n  nodefs.available: 10%\n  nodefs.inodesFree: 5%\n',
    );
  });

  it('changes only one of several documents', () => {
    const init = '# first\napiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n';
    const migration = migrate(`${init}---\n${HEADER}maxPods: 5\nfeatureGates: {CSIMigration: true}\n`, [25, 36]);
    expect(migration.text).toBe(`${init}---\n${HEADER}maxPods: 5\n`);
  });

  it.each([
    ['a file that the old kubelet could not read', `${HEADER}maxPods: many\n`, /kubelet.yaml:3:10 maxPods: must be an integer/],
    ['a file without such a document', 'kind: Pod\napiVersion: v1\n', /has no document of kind KubeletConfiguration/],
    ['two documents', `${HEADER}---\n${HEADER}`, /has more than one document/],
    ['no YAML', 'a: [', /not valid YAML/],
  ])('refuses %s', (_, text, message) => {
    expect(() => migrate(text, [25, 36])).toThrow(message);
  });

  it('migrates the defaults of every minor to every other in a readable form', () => {
    for (const from of [20, 28, 36]) {
      for (const to of [20, 23, 28, 36]) {
        const { text } = migrate(encodeYaml(profileDefaults('kubelet', from, catalogue)), [from, to]);
        const document = parseSource(text, '').documents[0];
        if (document === undefined) throw new Error('no document');
        expect([from, to, decodeKubeletConfiguration(document, { minor: to, catalogue }).problems]).toEqual([from, to, []]);
      }
    }
  });
});
