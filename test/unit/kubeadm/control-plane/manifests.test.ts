import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { manifestFile, staticPodNames, staticPodOf } from '../../../../src/kubeadm/control-plane/manifests.ts';
import type { ControlPlaneNode } from '../../../../src/kubeadm/control-plane/model.ts';
import type { StaticPodName } from '../../../../src/kubeadm/control-plane/paths.ts';
import type { PlannedPatch } from '../../../../src/kubelet/layers/patch-files.ts';
import { controlPlaneNode } from '../../../support/control-plane-node.ts';
import { initRecordings } from '../../../support/kubeadm-recordings.ts';

const recorded = initRecordings().flatMap(({ name, input, expected: { files } }) => (files ? [{ name, input, files }] : []));

describe('the static pods of a control plane', () => {
  it.each(recorded)('match kubeadm 1.36.2 byte for byte: $name', ({ input, files }) => {
    const node = controlPlaneNode(input);
    const written = staticPodNames(node).map((name) => manifestFile(node, name));
    const manifests = Object.entries(files).filter(([path]) => path.startsWith('/etc/kubernetes/manifests/'));
    expect(written.map(({ path }) => path).toSorted()).toEqual(manifests.map(([path]) => path).toSorted());
    expect(Object.fromEntries(written.map(({ path, content }) => [path, content]))).toEqual(Object.fromEntries(manifests));
    for (const { mode, owner } of written) expect({ mode, owner }).toEqual({ mode: 0o600, owner: 'root:root' });
  });
});

const CLUSTER = `
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
nodeRegistration: {name: cp-1}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
`;

interface Pod {
  readonly spec: {
    readonly containers: readonly [
      {
        readonly command: readonly string[];
        readonly env?: readonly unknown[];
        readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
        readonly startupProbe: { readonly failureThreshold: number; readonly httpGet: Readonly<Record<string, unknown>> };
        readonly ports: readonly { readonly containerPort: number }[];
        readonly resources: unknown;
      },
      ...Readonly<Record<string, unknown>>[],
    ];
    readonly volumes: readonly unknown[];
  };
}

function podOf(name: StaticPodName, cluster = '', changes: Partial<ControlPlaneNode> = {}): Pod {
  return staticPodOf(controlPlaneNode(CLUSTER + cluster, changes), name) as unknown as Pod;
}

const commandOf = (...args: Parameters<typeof podOf>): readonly string[] => podOf(...args).spec.containers[0].command;

describe('arguments', () => {
  it('of the user come last, in order and with repeats, and replace generated arguments of the same name', () => {
    const command = commandOf(
      'kube-scheduler',
      `scheduler:
  extraArgs:
  - {name: v, value: "4"}
  - {name: leader-elect, value: "false"}
  - {name: feature-gates, value: A=true}
  - {name: feature-gates, value: B=true}
`,
    );
    expect(command.slice(-4)).toEqual(['--v=4', '--leader-elect=false', '--feature-gates=A=true', '--feature-gates=B=true']);
    expect(command).not.toContain('--leader-elect=true');
  });

  it('of the controller manager omit the signing certificate when the CA key is external', () => {
    const command = commandOf('kube-controller-manager', '', { externalCA: true });
    expect(command).toEqual(expect.arrayContaining(['--cluster-signing-cert-file=', '--cluster-signing-key-file=']));
  });

  it('of the API server omit the modes when a file configures the authorizers', () => {
    const command = commandOf('kube-apiserver', 'apiServer: {extraArgs: [{name: authorization-config, value: /etc/authz.yaml}]}');
    expect(command.filter((argument) => argument.startsWith('--authorization'))).toEqual(['--authorization-config=/etc/authz.yaml']);
  });

  it('of the API server follow the client URLs that local etcd advertises', () => {
    const args = 'etcd: {local: {extraArgs: [{name: advertise-client-urls, value: "https://10.0.0.1:2379"}]}}';
    expect(commandOf('kube-apiserver', args)).toContain('--etcd-servers=https://10.0.0.1:2379');
  });

  it('of a joining etcd member list all members and the existing cluster state', () => {
    const etcdMembers = [
      { name: 'cp-0', peerURL: 'https://192.0.2.9:2380' },
      { name: 'cp-1', peerURL: 'https://192.0.2.10:2380' },
    ];
    const command = commandOf('etcd', '', { etcdMembers });
    expect(command).toContain('--initial-cluster=cp-0=https://192.0.2.9:2380,cp-1=https://192.0.2.10:2380');
    expect(command).toContain('--initial-cluster-state=existing');
  });

  it('use the loopback address of the same IP family as the advertise address', () => {
    const localAPIEndpoint = { advertiseAddress: 'fd00::10', bindPort: 6443 };
    expect(commandOf('etcd', '', { localAPIEndpoint })).toContain('--listen-client-urls=https://[::1]:2379,https://[fd00::10]:2379');
    expect(commandOf('kube-apiserver', '', { localAPIEndpoint })).toContain('--etcd-servers=https://[::1]:2379');
  });
});

describe('probes', () => {
  it.each([
    ['4m0s', 24],
    ['41s', 5],
    ['1h0m0.1s', 361],
  ])('allow a component %s to start: %i times ten seconds', (controlPlaneComponentHealthCheck, threshold) => {
    const { timeouts } = controlPlaneNode(CLUSTER);
    const pod = podOf('kube-apiserver', '', { timeouts: { ...timeouts, controlPlaneComponentHealthCheck } });
    expect(pod.spec.containers[0].startupProbe.failureThreshold).toBe(threshold);
  });

  it.each([
    ['10.1.2.3', '10.1.2.3'],
    ['0.0.0.0', undefined],
    ['::', undefined],
  ])('query the bind address of a component: %s', (address, host) => {
    const cluster = `controllerManager: {extraArgs: [{name: bind-address, value: "${address}"}]}`;
    expect(podOf('kube-controller-manager', cluster).spec.containers[0].startupProbe.httpGet.host).toBe(host);
  });

  it.each([
    ['http://0.0.0.0:2381', '0.0.0.0', 2381, 'HTTP'],
    ['https://10.0.0.5:4001,http://127.0.0.1:2381', '10.0.0.5', 4001, 'HTTPS'],
    ['https://[fd00::5]:2390', 'fd00::5', 2390, 'HTTPS'],
    ['http://metrics.example', 'metrics.example', 2381, 'HTTP'],
    ['http://:4001', '127.0.0.1', 4001, 'HTTP'],
    ['http://10.0.0.5:99999', '10.0.0.5', 2381, 'HTTP'],
    ['://', '127.0.0.1', 2381, 'HTTP'],
  ])('query the metrics URL of etcd: %s', (urls, host, port, scheme) => {
    const cluster = `etcd: {local: {extraArgs: [{name: listen-metrics-urls, value: "${urls}"}]}}`;
    const [container] = podOf('etcd', cluster).spec.containers;
    expect(container.startupProbe.httpGet).toMatchObject({ host, scheme });
    expect(container.ports[0]?.containerPort).toBe(port);
  });
});

describe('volumes', () => {
  it('of the user replace generated volumes of the same name; an empty type stays and disables the check', () => {
    const cluster = `apiServer: {extraVolumes: [{name: ca-certs, hostPath: /srv/ca, mountPath: /ca}]}`;
    const { volumes, containers } = podOf('kube-apiserver', cluster).spec;
    expect(volumes).toContainEqual({ name: 'ca-certs', hostPath: { path: '/srv/ca', type: '' } });
    expect(containers[0].volumeMounts.filter(({ name }) => name === 'ca-certs')).toEqual([{ name: 'ca-certs', mountPath: '/ca' }]);
  });

  it.each([
    ['/a/ca.crt', '/a/b/client.crt', '/a/b/client.key', ['/a']],
    ['/a/b/ca.crt', '/a/client.crt', '/c/client.key', ['/a', '/c']],
    ['/etc/ssl/certs/ca.crt', '/etc/kubernetes/pki/x/c.crt', '/usr/share/ca-certificates/c.key', []],
  ])('contain the directories of the credentials for an external etcd: %s %s %s', (caFile, certFile, keyFile, directories) => {
    const cluster = `etcd: {external: {endpoints: [https://10.0.0.1:2379], caFile: ${caFile}, certFile: ${certFile}, keyFile: ${keyFile}}}`;
    const mounts = podOf('kube-apiserver', cluster).spec.containers[0].volumeMounts;
    expect(mounts.filter(({ name }) => name.startsWith('etcd-certs-')).map(({ mountPath }) => mountPath)).toEqual(directories);
  });
});

describe('the environment', () => {
  it('contains the proxies of the host, overridden by user settings', () => {
    const proxyEnvironment = [
      { name: 'http_proxy', value: 'http://10.0.0.1:3128' },
      { name: 'no_proxy', value: 'localhost' },
    ];
    const cluster = `scheduler:
  extraEnvs:
  - {name: no_proxy, value: 10.0.0.0/8}
  - {name: GOGC, value: "80"}
  - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
`;
    expect(podOf('kube-scheduler', cluster, { proxyEnvironment }).spec.containers[0].env).toEqual([
      { name: 'GOGC', value: '80' },
      { name: 'NODE', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'spec.nodeName' } } },
      { name: 'http_proxy', value: 'http://10.0.0.1:3128' },
      { name: 'no_proxy', value: '10.0.0.0/8' },
    ]);
  });
});

describe('patches', () => {
  const patch = (
    text: string,
    type: PlannedPatch['type'],
    target: PlannedPatch['target'] = 'kube-scheduler',
  ): Partial<ControlPlaneNode> => ({
    patches: [{ patch: parse(text), type, target, source: 'file.yaml' }],
  });

  it('keep only the fields of a Pod, in the format of Go', () => {
    const pod = podOf(
      'kube-scheduler',
      '',
      patch(
        'spec: {nonsense: 1, containers: [{name: kube-scheduler, resources: {requests: {cpu: 0.5}}}, {name: side, image: x, env: [{name: A, value: ""}]}]}',
        'strategic',
      ),
    );
    expect(pod.spec).not.toHaveProperty('nonsense');
    expect(pod.spec.containers.find((each) => 'name' in each && each.name === 'side')).toEqual({
      name: 'side',
      image: 'x',
      env: [{ name: 'A' }],
      resources: {},
    });
    expect(pod.spec.containers.find((each) => 'command' in each)).toMatchObject({ resources: { requests: { cpu: '500m' } } });
  });

  it('apply to one target', () => {
    expect(podOf('etcd', '', patch('metadata: {labels: {a: b}}', 'merge'))).toEqual(podOf('etcd'));
  });

  it('that set a value of another type are rejected, with the file and the field', () => {
    expect(() => podOf('kube-scheduler', '', patch('[{op: replace, path: /spec/hostNetwork, value: "yes"}]', 'json'))).toThrow(
      /^kube-scheduler, with the patches of file\.yaml: spec\.hostNetwork must be true or false, not the string "yes"/,
    );
  });
});
