import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseUnitState, type UnitState } from '../../../../src/host/facts/unit.ts';
import { explainKubeletFailure } from '../../../../src/kubelet/facts/kubelet-failure.ts';
import { fixture } from '../../../support/fixture.ts';

const journal = (name: string): string => fixture(import.meta.url, `../../host/facts/fixtures/${name}.txt`);
const unit = (name: string): UnitState =>
  parseUnitState(fixture(import.meta.url, `../../host/facts/fixtures/systemd-252/show-${name}.txt`)) as UnitState;

/** By fixture: a part of the cause, and true if the cause is permanent. */
const CAUSES: Readonly<Record<string, readonly [cause: string, fatal: boolean]>> = {
  'kubelet-1.36/bad-flag-value': ['flag "--max-pods" has the invalid value "lots": strconv.ParseInt: parsing "lots": invalid syntax', true],
  'kubelet-1.36/bad-format': ['refuses its configuration: logging.format: Invalid value: "xml"', true],
  'kubelet-1.36/bad-kubeconfig': ['no usable kubeconfig: error loading config file "/etc/kubernetes/kubelet.conf"', true],
  'kubelet-1.36/cgroup-root': ['refuses its configuration: cgroup ["nope"] has some missing paths', true],
  'kubelet-1.36/cgroup-v1': ['the host uses cgroup v1', true],
  'kubelet-1.36/cipher': ['tlsCipherSuites: TLS_NOPE', true],
  'kubelet-1.36/cri-disabled': ['the CRI plugin of the container runtime is disabled', false],
  'kubelet-1.36/driver-systemd': ['cannot start its managers and cgroups: systemd not running on this host', false],
  'kubelet-1.36/duplicate-key': ['the host uses cgroup v1', true],
  'kubelet-1.36/eviction': ['cannot read a quantity of its configuration: quantities must match', true],
  'kubelet-1.36/expired': ['client certificate in /etc/kubernetes/kubelet.conf expired on 2021-01-01', true],
  'kubelet-1.36/inotify': ['the host has no inotify instances left', false],
  'kubelet-1.36/invalid-values': [
    '200 must be between 0 and 100, inclusive; maxPods (--max-pods) -5 must not be a negative number; kubelet is configured',
    true,
  ],
  'kubelet-1.36/json-format': ['refuses its configuration: cgroup ["nope"] has some missing paths', true],
  'kubelet-1.36/kubeconfig-missing-only': ['no usable kubeconfig: stat /etc/kubernetes/kubelet.conf: no such file or directory', true],
  'kubelet-1.36/locked-gate': ['feature gate NodeSwap is locked to true', true],
  'kubelet-1.36/missing-config': ['/var/lib/kubelet/config.yaml does not exist', true],
  'kubelet-1.36/no-bootstrap': ['no credentials: stat /etc/kubernetes/bootstrap-kubelet.conf', true],
  'kubelet-1.36/no-ca': ['/nope/ca.crt does not exist', true],
  'kubelet-1.36/no-cri': ['no container runtime responds at unix:///run/containerd/containerd.sock', false],
  'kubelet-1.36/port-10248': ['port 10248 is in use', true],
  'kubelet-1.36/port-10250': ['port 10250 is in use', true],
  'kubelet-1.36/reserved': ['cannot read a quantity of its configuration: --system-reserved value failed to parse', true],
  'kubelet-1.36/swap': ['swap is on', true],
  'kubelet-1.36/systemd-cgroup': ['maxPods (--max-pods) -5 must not be a negative number', true],
  'kubelet-1.36/systemd-flag': ['does not know the flag --no-such-flag', true],
  'kubelet-1.36/systemd-missing-config': ['/var/lib/kubelet/config.yaml does not exist', true],
  'kubelet-1.36/systemd-203': ['203/EXEC', true],
  'kubelet-1.36/tlsmin': ['tlsMinVersion: VersionTLS99', true],
  'kubelet-1.36/unknown-field': ['the host uses cgroup v1', true],
  'kubelet-1.36/unknown-flag': ['does not know the flag --container-runtime', true],
  'kubelet-1.36/unknown-gate': ['the host uses cgroup v1', true],
  'kubelet-1.36/unknown-short': ["does not know the flag 'Z' in -Z", true],
  'kubelet-1.36/webhook-no-kubeconfig': ['authorization mode Webhook needs one', true],
  'kubelet-1.36/wrong-type': [
    'cannot read its configuration: json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32',
    true,
  ],
  'kubelet-1.36/wrong-version': [
    'cannot read its configuration: no kind "KubeletConfiguration" is registered for version "kubelet.config.k8s.io/v1"',
    true,
  ],
  'kubelet-1.36/yaml-syntax': ["cannot read its configuration: yaml: line 3: did not find expected ',' or ']'", true],
  'kubelet-1.21/cgroup-driver': ['the kubelet uses systemd, docker uses cgroupfs', true],
  'kubelet-1.21/config-decode-structured': ['cannot read its configuration: no kind "KubeletConfiguration"', true],
  'kubelet-1.21/config-missing-fatal': ['/var/lib/kubelet/config.yaml does not exist', true],
  'kubelet-1.21/config-missing-structured': ['/var/lib/kubelet/config.yaml does not exist', true],
  'kubelet-1.21/docker-down': ['Cannot connect to the Docker daemon', false],
  'kubelet-1.21/eviction': ['cannot read a quantity of its configuration: quantities must match', true],
  'kubelet-1.21/feature-gate-fatal': ['does not know the feature gate NoSuchGate', true],
  'kubelet-1.21/gate-off': [
    'the kubelet is started with --dynamic-config-dir, but the feature gate DynamicKubeletConfig of this flag is off',
    true,
  ],
  'kubelet-1.21/invalid-configuration-fatal': [
    'MaxPods (--max-pods) -5 must not be a negative number; QOSReserved policies ["x"] bad',
    true,
  ],
  'kubelet-1.21/serving-cert-missing': ['/no/such.crt does not exist', true],
  'kubelet-1.21/swap': ['swap is on', true],
  'kubelet-1.21/unknown-flag': ['does not know the flag --no-such-flag', true],
};

describe('explainKubeletFailure', () => {
  it.each(Object.entries(CAUSES))('%s', (name, [cause, fatal]) => {
    const failure = explainKubeletFailure(null, journal(name));
    expect(failure.cause).toContain(cause);
    expect(failure.cause).not.toMatch(/\n|\\"|TypeMeta/);
    expect(failure.hint).not.toMatch(/[.]$/);
    expect(failure.fatal).toBe(fatal);
  });

  it('covers every journal fixture', () => {
    const folder = (version: string): string[] =>
      readdirSync(new URL(`../../host/facts/fixtures/${version}`, import.meta.url)).map((file) => `${version}/${file.replace('.txt', '')}`);
    expect(Object.keys(CAUSES).sort()).toEqual([...folder('kubelet-1.21'), ...folder('kubelet-1.36')].sort());
  });

  it.each([
    ['masked', 'kubelet.service is masked', true],
    ['not-found', 'kubelet.service does not exist', true],
    ['bad-setting', 'systemd cannot read kubelet.service', true],
    ['exec-203', '203/EXEC', true],
    ['failed-signal', 'the kubelet was killed by SIGKILL', false],
    ['stopped-enabled', 'unit inactive (dead), last exit code 1', false],
    ['active', 'unit active (running)', false],
  ])('uses the state of a unit that is %s', (name, cause, fatal) => {
    expect(explainKubeletFailure(unit(name), null)).toMatchObject({ cause: expect.stringContaining(cause), fatal });
  });

  it('prefers the state of the unit to older journal entries', () => {
    expect(explainKubeletFailure(unit('masked'), journal('kubelet-1.36/swap')).cause).toContain('masked');
  });

  it.each([
    ['no journal', null],
    ['an empty one', ''],
    ['a journal of information only', 'I1120 13:22:32.548275   28597 server.go:545] "Kubelet version" kubeletVersion="v1.36.2"\n'],
  ])('names the state of the unit with %s', (_, text) => {
    expect(explainKubeletFailure(null, text)).toEqual({
      cause: 'unit state unknown',
      hint: 'See journalctl -u kubelet on the host',
      fatal: false,
    });
  });

  describe('with several runs', () => {
    const started = 'Started kubelet.service - kubelet: The Kubernetes Node Agent.\n';
    const old = `${started}${journal('kubelet-1.36/missing-config')}`;

    it('uses the last run', () => {
      expect(explainKubeletFailure(null, `${old}${started}${journal('kubelet-1.36/swap')}`).cause).toBe('swap is on');
    });

    it('uses the previous run while the last one has not logged anything', () => {
      expect(explainKubeletFailure(null, `${old}${started}`).cause).toContain('does not exist');
    });

    it('ignores earlier runs when the last one is running', () => {
      expect(explainKubeletFailure(unit('active'), `${old}${started}`, { lastRunOnly: true }).cause).toBe('unit active (running)');
    });

    it('distinguishes runs by process id if systemd’s lines are missing', () => {
      const text = `${journal('kubelet-1.36/missing-config')}${journal('kubelet-1.36/no-cri')}`;
      expect(explainKubeletFailure(null, text).cause).toContain('no container runtime');
      expect(explainKubeletFailure(null, text, { lastRunOnly: true }).cause).toContain('no container runtime');
    });

    it('does not report an expired certificate for other errors after a new bootstrap', () => {
      const expired = journal('kubelet-1.36/expired')
        .split('\n')
        .filter((line) => line.includes('is expired'))
        .join('\n');
      const pid = /^E\d+ \S+\s+(\d+)/.exec(expired)?.[1] as string;
      const later = journal('kubelet-1.36/no-cri').replace(/^([IWE]\d+ \S+\s+)\d+/gm, `$1${pid}`);
      expect(explainKubeletFailure(null, `${expired}\n${later}`).cause).toContain('no container runtime');
    });
  });

  it.each([
    [
      'a feature gate that only warns',
      'W1120 13:18:48.144859   25578 feature_gate.go:420] unrecognized feature gate: NoSuchGate\n',
      'unit state unknown',
    ],
    [
      'an unknown last error',
      'E1120 13:18:48.1   25578 run.go:72] "command failed" err="failed to run Kubelet: \\"x\\" is odd"\n',
      'failed to run Kubelet: "x" is odd',
    ],
    ['an error over several lines', 'E1120 13:18:48.1   25578 run.go:72] "command failed" err=<\n\tfirst\n\tsecond\n >\n', 'first second'],
    ['a truncated error over several lines', 'E1120 13:18:48.1   25578 run.go:72] "command failed" err=<\n\tfirst\n', 'unit state unknown'],
    ['a panic', 'panic: runtime error: index out of range\n\ngoroutine 1 [running]:\n', 'runtime error: index out of range'],
    ['broken JSON', '{"ts":1,"msg":"command failed","err":"x\n', 'unit state unknown'],
    [
      'a full disk',
      'E1120 13:18:48.1   25578 x.go:1] "Failed to write" err="write /var/lib/kubelet/x: no space left on device"\n',
      'the disk is full',
    ],
  ])('%s', (_, text, cause) => {
    expect(explainKubeletFailure(null, text).cause).toBe(cause);
  });
});
