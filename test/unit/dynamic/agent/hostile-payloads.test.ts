import { describe, expect, it } from 'vitest';
import type { PayloadNode } from '../../../../src/dynamic/agent/payload-changes.ts';
import { preparePayload } from '../../../../src/dynamic/agent/prepare-payload.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';

const catalogue = await loadCatalogue();
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';
const LOCAL = `${HEADER}staticPodPath: /etc/kubernetes/manifests
rotateCertificates: true
seccompDefault: true
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
`;
const NODE: PayloadNode = {
  name: 'node-1',
  directory: '/agent',
  group: null,
  minor: 36,
  catalogue,
  local: { path: '/var/lib/kubelet/config.yaml', text: LOCAL },
  flags: [],
  dropIns: [],
  running: null,
  cgroupVersion: 2,
};
const identity = { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet', uid: 'u', resourceVersion: '1' };

const refusalOf = (
  data: Readonly<Record<string, string>>,
  { isDrained = false, ...over }: Partial<PayloadNode> & { readonly isDrained?: boolean } = {},
) => preparePayload({ identity, data }, { ...NODE, ...over }, { allow: 'new-pods-only', isDrained }).refusal;

/** What a writer of ConfigMaps could try, with the field that the refusal names. */
const HOSTILE: readonly (readonly [text: string, named: string])[] = [
  ['authentication: {anonymous: {enabled: true}}', 'authentication.anonymous.enabled'],
  ['authentication: {anonymous: {enabled: false}}\nauthentication: {anonymous: {enabled: true}}', 'authentication.anonymous.enabled'],
  ['authentication: {<<: {anonymous: {enabled: true}}}', 'authentication.anonymous.enabled'],
  ['authorization: {mode: AlwaysAllow}', 'authorization.mode'],
  ['authentication: {x509: {clientCAFile: null}}', 'authentication.x509.clientCAFile'],
  ['authentication: {x509: {clientCAFile: /tmp/ca.crt}}', 'authentication.x509.clientCAFile'],
  ['authentication: {x509: {clientCAFile: ca.crt}}', 'authentication.x509.clientCAFile'],
  ['authentication: {webhook: {enabled: false}}', 'authentication.webhook.enabled'],
  ['authentication: {webhook: {cacheTTL: 87600h}}', 'authentication.webhook.cacheTTL'],
  ['authorization: {webhook: {cacheAuthorizedTTL: 87600h}}', 'authorization.webhook.cacheAuthorizedTTL'],
  ['authorization: {webhook: {cacheUnauthorizedTTL: 87600h}}', 'authorization.webhook.cacheUnauthorizedTTL'],
  ['staticPodPath: /tmp/pods', 'staticPodPath'],
  ['staticPodPath: pods', 'staticPodPath'],
  ['staticPodURL: http://10.0.0.1/pods', 'staticPodURL'],
  ['staticPodURLHeader: {Host: [example.org]}', 'staticPodURLHeader'],
  ['readOnlyPort: 10255', 'readOnlyPort'],
  ['healthzBindAddress: 0.0.0.0', 'healthzBindAddress'],
  ['healthzPort: 0', 'healthzPort'],
  ['address: 127.0.0.1', 'address'],
  ['port: 10260', 'port'],
  ['enableServer: false', 'enableServer'],
  ['enableDebuggingHandlers: false', 'enableDebuggingHandlers'],
  ['featureGates: {AllAlpha: true}', 'featureGates[AllAlpha]'],
  ['featureGates: {KubeletFineGrainedAuthz: false}', 'featureGates[KubeletFineGrainedAuthz]'],
  ['imagePullCredentialsVerificationPolicy: NeverVerify', 'imagePullCredentialsVerificationPolicy'],
  ['imagePullCredentialsVerificationPolicy: AlwaysVerify', 'imagePullCredentialsVerificationPolicy'],
  ['imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages', 'imagePullCredentialsVerificationPolicy'],
  ['allowedUnsafeSysctls: ["kernel.*"]', 'allowedUnsafeSysctls'],
  ['containerRuntimeEndpoint: unix:///tmp/cri.sock', 'containerRuntimeEndpoint'],
  ['imageServiceEndpoint: unix:///tmp/cri.sock', 'imageServiceEndpoint'],
  ['tlsCertFile: /tmp/a.crt\ntlsPrivateKeyFile: /tmp/a.key', 'tlsCertFile'],
  ['tlsMinVersion: VersionTLS10', 'tlsMinVersion'],
  ['tlsCipherSuites: [TLS_RSA_WITH_RC4_128_SHA]', 'tlsCipherSuites'],
  ['serverTLSBootstrap: true', 'serverTLSBootstrap'],
  ['rotateCertificates: false', 'rotateCertificates'],
  ['podLogsDir: /srv/victim', 'podLogsDir'],
  ['podLogsDir: logs', 'podLogsDir'],
  ['podLogsDir: /etc', 'podLogsDir'],
  ['podLogsDir: /var/log', 'podLogsDir'],
  ['volumePluginDir: /opt/plug', 'volumePluginDir'],
  ['volumePluginDir: plug', 'volumePluginDir'],
  ['volumePluginDir: /tmp/plug', 'volumePluginDir'],
  ['logging: {verbosity: 10}', 'logging.verbosity'],
  ['logging: {verbosity: 8}', 'logging.verbosity'],
  ['logging: {vmodule: [{filePattern: "request*", verbosity: 9}]}', 'logging.vmodule'],
  ['enableSystemLogQuery: true', 'enableSystemLogQuery'],
  ['tracing: {endpoint: "10.99.0.1:4317", samplingRatePerMillion: 1000000}', 'tracing.endpoint'],
  ['seccompDefault: false', 'seccompDefault'],
  ['seccompDefault: null', 'seccompDefault'],
  ['fileCheckFrequency: 1µs', 'fileCheckFrequency'],
  ['syncFrequency: 1ms', 'syncFrequency'],
  ['volumeStatsAggPeriod: 1ms', 'volumeStatsAggPeriod'],
  ['kubeAPIQPS: 1', 'kubeAPIQPS'],
  ['nodeLeaseDurationSeconds: 1', 'nodeLeaseDurationSeconds'],
  ['oomScoreAdj: 1000', 'oomScoreAdj'],
  ['logging: {flushFrequency: 1}', 'logging.flushFrequency'],
];

describe.each(HOSTILE)('a ConfigMap with %s', (text, named) => {
  it('is refused by an agent with the default policy, and names the field', () => {
    const refusal = refusalOf({ kubelet: `${OVERLAY}${text}\n` });
    expect(refusal).toMatchObject({ code: expect.stringMatching(/^(NOT_ALLOWED|VALIDATION_FAILED)$/) });
    expect(refusal?.cause).toContain(named);
  });

  it('is refused on a cordoned node, in a layer of the node, and in a complete document', () => {
    expect(refusalOf({ kubelet: `${OVERLAY}${text}\n` }, { isDrained: true })).not.toBeNull();
    expect(refusalOf({ kubelet: `${OVERLAY}maxPods: 100\n`, 'kubelet.node.node-1': `${OVERLAY}${text}\n` })).not.toBeNull();
    if (!text.startsWith('authentication')) expect(refusalOf({ kubelet: `${LOCAL}${text}\n` })).not.toBeNull();
  });
});

const flag = (name: string, value: string) => ({ name, value, source: `--${name}` });

/** Unsafe fields that a flag or a drop-in file of the node hides. */
const HIDDEN: readonly (readonly [text: string, hidden: Partial<PayloadNode>, named: string])[] = [
  ['readOnlyPort: 10255', { flags: [flag('read-only-port', '0')] }, 'readOnlyPort'],
  ['authentication: {anonymous: {enabled: true}}', { flags: [flag('anonymous-auth', 'false')] }, 'authentication.anonymous.enabled'],
  ['authorization: {mode: AlwaysAllow}', { flags: [flag('authorization-mode', 'Webhook')] }, 'authorization.mode'],
  ['logging: {verbosity: 10}', { flags: [flag('v', '2')] }, 'logging.verbosity'],
  ['volumePluginDir: /opt/plug', { flags: [flag('volume-plugin-dir', '/usr/libexec/plug')] }, 'volumePluginDir'],
  [
    'cgroupDriver: cgroupfs',
    { flags: [flag('cgroup-driver', 'systemd')], local: { ...NODE.local, text: `${LOCAL}cgroupDriver: systemd\n` } },
    'cgroupDriver',
  ],
  [
    'readOnlyPort: 10255',
    { dropIns: [{ path: '/etc/kubernetes/kubelet.conf.d/10-port.conf', text: `${HEADER}readOnlyPort: 0\n` }] },
    'readOnlyPort',
  ],
  [
    'podLogsDir: /srv/victim',
    { dropIns: [{ path: '/etc/kubernetes/kubelet.conf.d/10-logs.conf', text: `${HEADER}podLogsDir: /var/log/pods\n` }] },
    'podLogsDir',
  ],
];

describe('a ConfigMap with an unsafe field that a flag or a drop-in file overrides', () => {
  it.each(HIDDEN)('is refused: %s', (text, hidden, named) => {
    const refusal = refusalOf({ kubelet: `${OVERLAY}${text}\nmaxPods: 101\n` }, hidden);
    expect(refusal).toMatchObject({ code: 'NOT_ALLOWED', cause: expect.stringContaining(named) });
    expect(refusal?.cause).toContain('overrides the field at present');
  });

  it('is permitted if the flag has the same value, or with --allow unsafe', () => {
    const text = { kubelet: `${OVERLAY}readOnlyPort: 10255\nmaxPods: 101\n` };
    expect(refusalOf(text, { flags: [flag('read-only-port', '10255')] })).toBeNull();
    const hidden = { ...NODE, flags: [flag('read-only-port', '0')] };
    expect(preparePayload({ identity, data: text }, hidden, { allow: 'unsafe', isDrained: false }).refusal).toBeNull();
  });

  it('may set hidden fields that are not unsafe', () => {
    expect(refusalOf({ kubelet: `${OVERLAY}kubeAPIQPS: 60\n` }, { flags: [flag('kube-api-qps', '50')] })).toBeNull();
  });
});

describe('usual ConfigMaps', () => {
  it.each([
    'maxPods: 120',
    'logging: {verbosity: 4}',
    'clusterDNS: [10.96.0.10]',
    'authentication: {webhook: {cacheTTL: 30s}}',
    'evictionHard: {memory.available: 200Mi}',
    'enableSystemLogHandler: false',
    'enableProfilingHandler: false',
    'fileCheckFrequency: 40s',
    'port: 10250',
    'authentication: {anonymous: {enabled: false}}',
  ])('are permitted: %s', (text) => {
    expect(refusalOf({ kubelet: `${OVERLAY}${text}\n` })).toBeNull();
  });

  it('show the fields that they set, with class and danger', () => {
    const data = { kubelet: `${OVERLAY}maxPods: 120\nreadOnlyPort: 10255\nport: 10250\n` };
    const { fields } = preparePayload(
      { identity, data },
      { ...NODE, flags: [flag('read-only-port', '0')] },
      { allow: 'unsafe', isDrained: false },
    );
    expect(fields.map(({ path, class: name, danger }) => [path, name, danger])).toEqual([
      ['maxPods', 'safe', null],
      ['readOnlyPort', 'unsafe', 'listens'],
    ]);
  });

  it('keep running under a stricter policy, except dangerous ones', () => {
    const isRefused = (text: string): boolean => {
      const source = { identity, data: { kubelet: `${OVERLAY}${text}\n` } };
      const before = preparePayload(source, NODE, { allow: 'unsafe', isDrained: false });
      const running = { ...NODE, running: before.config };
      const proven = [before.candidate.hash ?? ''];
      return preparePayload(source, running, { allow: 'safe', isDrained: false, proven }).refusal !== null;
    };
    expect(isRefused('cgroupDriver: systemd')).toBe(false);
    expect(isRefused('clusterDomain: other.local')).toBe(false);
    expect(isRefused('logging: {verbosity: 9}')).toBe(true);
  });
});
