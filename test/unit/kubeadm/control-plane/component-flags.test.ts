import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { ClusterConfiguration } from '../../../../src/kubeadm/config/model.ts';
import { releaseFacts } from '../../../../src/kubeadm/config/releases.ts';
import { componentArgumentFindings, loadComponentFlags } from '../../../../src/kubeadm/control-plane/component-flags.ts';
import data from '../../../../src/kubeadm/data/component-flags.json' with { type: 'json' };

const flags = await loadComponentFlags();

type Arguments = Readonly<Record<string, string>>;

function findings(cluster: Partial<Record<keyof typeof PARTS, Arguments>>, more: ClusterConfiguration = {}): readonly string[] {
  const extraArgs = (args: Arguments = {}) => ({ extraArgs: Object.entries(args).map(([name, value]) => ({ name, value })) });
  const written: ClusterConfiguration = {
    kubernetesVersion: 'v1.36.2',
    apiServer: extraArgs(cluster.apiServer),
    controllerManager: extraArgs(cluster.controllerManager),
    scheduler: extraArgs(cluster.scheduler),
    etcd: { local: { ...extraArgs(cluster.etcd), ...more.etcd?.local } },
  };
  const { etcd: _, ...rest } = more;
  return componentArgumentFindings({ ...written, ...rest }, flags, 'v1.36.2').map(
    ({ path, problem: { code, severity = 'error', message, hint } }) =>
      `${path.replace('ClusterConfiguration.', '')} ${severity} ${code}: ${message}. ${hint}`,
  );
}

const PARTS = { apiServer: 'kube-apiserver', controllerManager: 'kube-controller-manager', scheduler: 'kube-scheduler', etcd: 'etcd' };

/** Arguments of the files that operators write for kubeadm. */
const TYPICAL: Readonly<Record<keyof typeof PARTS, Arguments>> = {
  apiServer: {
    'admission-control-config-file': '/etc/kubernetes/admission.yaml',
    'advertise-address': '192.0.2.10',
    'allow-privileged': 'true',
    'anonymous-auth': 'false',
    'audit-log-compress': 'true',
    'audit-log-format': 'json',
    'audit-log-maxage': '30',
    'audit-log-maxbackup': '10',
    'audit-log-maxsize': '100',
    'audit-log-path': '/var/log/kubernetes/audit.log',
    'audit-policy-file': '/etc/kubernetes/audit-policy.yaml',
    'audit-webhook-config-file': '/etc/kubernetes/webhook.yaml',
    'authentication-config': '/etc/kubernetes/authentication.yaml',
    'authentication-token-webhook-cache-ttl': '10s',
    'authorization-mode': 'Node,RBAC',
    'bind-address': '0.0.0.0',
    'default-not-ready-toleration-seconds': '30',
    'default-unreachable-toleration-seconds': '30',
    'delete-collection-workers': '10',
    'disable-admission-plugins': 'PodSecurity',
    'enable-admission-plugins': 'NodeRestriction,AlwaysPullImages,EventRateLimit',
    'enable-aggregator-routing': 'true',
    'encryption-provider-config': '/etc/kubernetes/enc.yaml',
    'encryption-provider-config-automatic-reload': 'true',
    'endpoint-reconciler-type': 'lease',
    'etcd-compaction-interval': '5m',
    'etcd-servers': 'https://192.0.2.10:2379',
    'event-ttl': '1h0m0s',
    'external-hostname': 'api.example.com',
    'feature-gates': 'AllAlpha=false',
    'goaway-chance': '0.001',
    'kubelet-certificate-authority': '/etc/kubernetes/pki/ca.crt',
    'kubelet-preferred-address-types': 'InternalIP,Hostname',
    'max-mutating-requests-inflight': '400',
    'max-requests-inflight': '800',
    'oidc-ca-file': '/etc/kubernetes/pki/oidc.crt',
    'oidc-client-id': 'kubernetes',
    'oidc-groups-claim': 'groups',
    'oidc-groups-prefix': 'oidc:',
    'oidc-issuer-url': 'https://id.example.com',
    'oidc-required-claim': 'aud=kubernetes',
    'oidc-username-claim': 'email',
    'oidc-username-prefix': '-',
    profiling: 'false',
    'proxy-client-cert-file': '/etc/kubernetes/pki/front-proxy-client.crt',
    'request-timeout': '3m0s',
    'requestheader-allowed-names': '',
    'runtime-config': 'api/all=true,batch/v1',
    'secure-port': '6443',
    'service-account-extend-token-expiration': 'false',
    'service-account-issuer': 'https://kubernetes.default.svc',
    'service-account-lookup': 'true',
    'service-cluster-ip-range': '10.96.0.0/16,fd00::/112',
    'service-node-port-range': '30000-32767',
    'storage-backend': 'etcd3',
    'tls-cipher-suites': 'TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384',
    'tls-curve-preferences': '23,29',
    'tls-min-version': 'VersionTLS12',
    'tls-sni-cert-key': '/a.crt,/a.key:example.com',
    'tracing-config-file': '/etc/kubernetes/tracing.yaml',
    'log-json-info-buffer-size': '1Mi',
    'allow-metric-labels': 'a,b=c',
    'watch-cache-sizes': 'pods#1000',
    v: '2',
    vmodule: 'a=1',
  },
  controllerManager: {
    'allocate-node-cidrs': 'true',
    'attach-detach-reconcile-sync-period': '1m0s',
    'bind-address': '::',
    'cloud-provider': 'external',
    'cluster-cidr': '10.244.0.0/16',
    'cluster-name': 'lab',
    'cluster-signing-duration': '8760h0m0s',
    'concurrent-deployment-syncs': '20',
    'configure-cloud-routes': 'false',
    controllers: '*,bootstrapsigner,tokencleaner',
    'feature-gates': 'AllBeta=true',
    'horizontal-pod-autoscaler-sync-period': '10s',
    'horizontal-pod-autoscaler-tolerance': '0.2',
    'kube-api-burst': '200',
    'kube-api-qps': '100.5',
    'leader-elect': 'true',
    'leader-elect-lease-duration': '30s',
    'node-cidr-mask-size': '24',
    'node-cidr-mask-size-ipv6': '120',
    'node-eviction-rate': '0.1',
    'node-monitor-grace-period': '20s',
    'node-monitor-period': '2s',
    profiling: 'false',
    'terminated-pod-gc-threshold': '100',
    'tls-min-version': 'VersionTLS13',
    'use-service-account-credentials': 'true',
    'flex-volume-plugin-dir': '/var/lib/kubelet/volumeplugins',
    v: '1',
  },
  scheduler: {
    'authentication-kubeconfig': '/etc/kubernetes/scheduler.conf',
    'bind-address': '0.0.0.0',
    config: '/etc/kubernetes/scheduler.yaml',
    'feature-gates': 'AllAlpha=false',
    'leader-elect': 'true',
    'secure-port': '10259',
    'tls-cipher-suites': 'TLS_AES_128_GCM_SHA256',
    v: '3',
  },
  etcd: {
    'auto-compaction-mode': 'periodic',
    'auto-compaction-retention': '8h',
    'backend-batch-interval': '100ms',
    'cipher-suites': 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
    'client-cert-auth': 'true',
    'election-timeout': '5000',
    'experimental-initial-corrupt-check': 'true',
    'feature-gates': 'InitialCorruptCheck=true',
    'heartbeat-interval': '500',
    'initial-cluster-state': 'existing',
    'listen-client-urls': 'https://0.0.0.0:2379',
    'listen-metrics-urls': 'http://0.0.0.0:2381',
    'listen-peer-urls': 'https://192.0.2.10:2380',
    'log-level': 'warn',
    'log-outputs': 'stderr',
    'max-request-bytes': '10485760',
    'max-wals': '5',
    metrics: 'extensive',
    'peer-client-cert-auth': 'true',
    'quota-backend-bytes': '8589934592',
    'snapshot-count': '10000',
    'tls-min-version': 'TLS1.2',
    'unsafe-no-fsync': 'false',
    'watch-progress-notify-interval': '5s',
  },
};

describe('arguments of control plane components', () => {
  it.each(Object.keys(PARTS) as readonly (keyof typeof PARTS)[])('accepts typical arguments of %s', (part) => {
    expect(findings({ [part]: TYPICAL[part] })).toEqual([]);
    expect(
      findings(
        { [part]: Object.fromEntries(Object.entries(TYPICAL[part]).filter(([name]) => !name.startsWith('tls-curve'))) },
        { kubernetesVersion: 'v1.35.6' },
      ),
    ).toEqual([]);
  });

  it.each([
    [
      'apiServer',
      'cloud-provider',
      'aws',
      'name error FLAG_UNKNOWN: kube-apiserver 1.36 has no flag --cloud-provider, which was removed after 1.21: the component exits at startup. Remove the argument',
    ],
    [
      'apiServer',
      'audit-log-pth',
      '/a',
      'name error FLAG_UNKNOWN: kube-apiserver 1.36 has no flag --audit-log-pth: the component exits at startup. Did you mean --audit-log-path?',
    ],
    [
      'apiServer',
      'insecure-port',
      '0',
      'name error FLAG_UNKNOWN: kube-apiserver 1.36 has no flag --insecure-port, which was removed after 1.21: the component exits at startup. Remove the argument',
    ],
    [
      'apiServer',
      'audit-log-maxage',
      '30d',
      'value error FLAG_INVALID_VALUE: --audit-log-maxage of kube-apiserver 1.36 expects an integer, not "30d": the component exits at startup. Correct the value',
    ],
    [
      'apiServer',
      'event-ttl',
      '1d',
      'value error FLAG_INVALID_VALUE: --event-ttl of kube-apiserver 1.36 expects a duration with a unit, e.g. 30s, not "1d": the component exits at startup. Correct the value',
    ],
    [
      'apiServer',
      'profiling',
      'no',
      'value error FLAG_INVALID_VALUE: --profiling of kube-apiserver 1.36 expects true or false, not "no": the component exits at startup. Correct the value',
    ],
    [
      'apiServer',
      'admission-control',
      'NodeRestriction',
      'name warning FLAG_DEPRECATED: --admission-control is deprecated in kube-apiserver 1.36. Remove the argument before a version without the flag is installed',
    ],
    [
      'controllerManager',
      'bind-address',
      'localhost',
      'value error FLAG_INVALID_VALUE: --bind-address of kube-controller-manager 1.36 expects an IP address, not "localhost": the component exits at startup. Correct the value',
    ],
    [
      'controllerManager',
      'kube-api-qps',
      'many',
      'value error FLAG_INVALID_VALUE: --kube-api-qps of kube-controller-manager 1.36 expects a number, not "many": the component exits at startup. Correct the value',
    ],
    [
      'controllerManager',
      'port',
      '0',
      'name error FLAG_UNKNOWN: kube-controller-manager 1.36 has no flag --port, which was removed after 1.21: the component exits at startup. Remove the argument',
    ],
    [
      'scheduler',
      'v',
      '-1',
      'value error FLAG_INVALID_VALUE: --v of kube-scheduler 1.36 expects an integer that is not negative, not "-1": the component exits at startup. Correct the value',
    ],
    [
      'etcd',
      'enable-v2',
      'true',
      'name error FLAG_UNKNOWN: etcd 3.6 has no flag --enable-v2, which was removed after 3.5: the component exits at startup. Remove the argument',
    ],
    [
      'etcd',
      'quota_backend_bytes',
      '1',
      'name error FLAG_UNKNOWN: etcd 3.6 has no flag --quota_backend_bytes: the component exits at startup. Did you mean --quota-backend-bytes?',
    ],
    [
      'etcd',
      'quota-backend-bytes',
      '8Gi',
      'value error FLAG_INVALID_VALUE: --quota-backend-bytes of etcd 3.6 expects an integer, not "8Gi": the component exits at startup. Correct the value',
    ],
    [
      'etcd',
      'experimental-memory-mlock',
      'true',
      'name warning FLAG_DEPRECATED: --experimental-memory-mlock is deprecated in etcd 3.6. Use --memory-mlock',
    ],
  ] as const)('%s: %s=%s', (part, name, value, expected) => {
    const path = part === 'etcd' ? 'etcd.local' : part;
    expect(findings({ [part]: { [name]: value } })).toEqual([`${path}.extraArgs[0].${expected}`]);
  });

  it('accepts underscores in flags of Kubernetes', () => {
    expect(findings({ apiServer: { audit_log_path: '/a' } })).toEqual([]);
  });

  it('knows the first version of a flag', () => {
    expect(findings({ scheduler: { 'tls-curve-preferences': '23' } }, { kubernetesVersion: 'v1.35.0' })).toEqual([
      'scheduler.extraArgs[0].name error FLAG_UNKNOWN: kube-scheduler 1.35 has no flag --tls-curve-preferences, which was added in 1.36: the component exits at startup. Remove the argument',
    ]);
  });

  it.each<readonly [string, ClusterConfiguration]>([
    ['a version without data', { kubernetesVersion: 'v1.37.0' }],
    ['a label', { kubernetesVersion: 'stable-1' }],
    ['a pre-release', { kubernetesVersion: 'v1.36.0-rc.1' }],
    ['images of another repository', { imageRepository: 'registry.example.com/kubernetes' }],
  ])('only warns about %s', (_, cluster) => {
    const found = findings({ apiServer: { 'cloud-provider': 'aws', 'event-ttl': 'x' } }, cluster);
    expect(found.map((line) => line.split(':')[0])).toEqual([
      'apiServer.extraArgs[0].name warning FLAG_UNKNOWN',
      'apiServer.extraArgs[1].value warning FLAG_INVALID_VALUE',
    ]);
    expect(found[0]).toContain('The image may have other flags: check with kube-apiserver --help');
    expect(found[0]).not.toContain('exits');
  });

  it('knows etcd by the tag of its image', () => {
    const etcd = (imageTag: string): ClusterConfiguration => ({ etcd: { local: { imageTag } } });
    const lines = (tag: string) =>
      findings({ etcd: { 'enable-v2': 'true', 'memory-mlock': 'true' } }, etcd(tag)).map((line) => line.split(/[,:.] /)[1]);
    expect(lines('3.5.24-0')).toEqual(['--enable-v2 is deprecated in etcd 3.5', 'etcd 3.5 has no flag --memory-mlock']);
    expect(findings({ etcd: { 'experimental-memory-mlock': 'true' } }, etcd('v3.7.0'))[0]).toContain(
      'which was removed after 3.6: the component exits at startup. Use --memory-mlock',
    );
    expect(findings({ etcd: { nothing: 'true' } }, etcd('mine'))[0]).toContain('warning FLAG_UNKNOWN');
  });
});

describe('data of component flags', () => {
  const span = z.tuple([z.int(), z.int()]);
  const flag = z.strictObject({
    flag: z.string().regex(/^[a-z][a-z0-9-]*$/),
    type: z.enum(['string', 'bool', 'int', 'uint', 'float', 'duration', 'ip', 'other']),
    deprecatedSince: z.int().optional(),
    minors: span.optional(),
  });
  const component = z.strictObject({ minors: span, flags: z.array(flag).min(55) });

  it('has the expected members', () => {
    expect(z.strictObject(Object.fromEntries(Object.values(PARTS).map((name) => [name, component]))).safeParse(data).error).toBeUndefined();
    for (const { flags: list } of Object.values(data))
      expect(list.map(({ flag: name }) => name)).toEqual([...new Set(list.map(({ flag: name }) => name))].sort());
  });

  it('has the etcd of every known release', () => {
    for (const minor of [35, 36, 37]) {
      const [, etcd] = /^3\.(\d+)\./.exec(releaseFacts(`v1.${minor}.0`).etcd) ?? [];
      expect(flags.etcd.minors[1]).toBeGreaterThanOrEqual(Number(etcd));
    }
  });
});
