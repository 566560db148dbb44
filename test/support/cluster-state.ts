import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { KubeObject } from '../../src/kube/object.ts';
import { filesLeft } from './kubeadm-host.ts';
import type { LabHosts } from './lab-hosts.ts';

/** All of kubeadm's files and directories but copies in tmp; below /var/lib/kubelet the rest is the kubelet's. */
const FIND = `find /etc/kubernetes /var/lib/kubelet/pki /var/lib/kubelet/*.yaml /var/lib/kubelet/*.env /usr/lib/systemd/system/kubelet.service.d /etc/systemd/system/kubelet.service.d ! -name kubeletadm-node.yaml ! -path '/etc/kubernetes/tmp*'`;

/** A name that holds the time of its creation or a number that is drawn. */
const withoutTimes = (path: string): string => path.replace(/\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d/g, 'TIME').replace(/TIME\d+/g, 'TIME');

/**
 * The files and directories of Kubernetes on a host, by path, in a form that is equal for two clusters of the same configuration:
 * of keys only the mode counts, of certificates all but the key and the times.
 */
export function hostState(lab: LabHosts, host: string): ReadonlyMap<string, unknown> {
  const list = lab.run(host, `${FIND} -printf '%M %U:%G %l %p\\n' 2>/dev/null || true`);
  const entries = list
    .trim()
    .split('\n')
    .map((line) => line.split(' '))
    .map(
      ([mode, owner, target, path]) => [`${withoutTimes(path ?? '')} (mode)`, `${mode} ${owner} ${withoutTimes(target ?? '')}`] as const,
    );
  const root = mkdtempSync(join(tmpdir(), 'kubeletadm-state-'));
  try {
    const archive = lab.run(host, `${FIND} -type f -print0 2>/dev/null | tar -czf - --null -T - 2>/dev/null | base64 -w0`);
    execFileSync('tar', ['-xzf', '-', '-C', root], { input: Buffer.from(archive, 'base64') });
    const contents = [...filesLeft(root)].map(([path, found]) => [withoutTimes(path), isKey(path) ? 'a key' : found] as const);
    return new Map<string, unknown>([...entries, ...contents]);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Files of keys, and of certificates that the kubelet signs itself. */
const isKey = (path: string): boolean => /\/sa\.pub$|\/pki\/kubelet[^/]*\.(crt|pem)$/.test(path);

const KUBECTL = 'kubectl --kubeconfig /etc/kubernetes/admin.conf get -o json';
/** The API server creates its own roles while it starts. */
const LISTS = [
  '-n kube-system configmaps,secrets,serviceaccounts,roles,rolebindings,daemonsets,deployments,services -l kubernetes.io/bootstrapping!=rbac-defaults',
  '-n kube-public configmaps,roles,rolebindings -l kubernetes.io/bootstrapping!=rbac-defaults',
  'clusterroles,clusterrolebindings,nodes -l kubernetes.io/bootstrapping!=rbac-defaults',
];

/** The objects of a cluster by kind and name, without what differs between two clusters of the same configuration. */
export function clusterState(lab: LabHosts, host: string): ReadonlyMap<string, unknown> {
  const objects = LISTS.flatMap((list): readonly KubeObject[] => JSON.parse(lab.run(host, `${KUBECTL} ${list}`)).items);
  const ofKubeadm = objects.filter(({ kind, metadata: { name } }) =>
    kind === 'ServiceAccount' ? ['coredns', 'kube-proxy'].includes(name) : !OF_OTHERS.test(name),
  );
  return new Map(
    ofKubeadm.map((object) => {
      const { namespace = '', name } = object.metadata;
      return [`${object.kind} ${namespace}/${name.replace(/^bootstrap-token-(?!abcdef)\w+/, 'bootstrap-token-drawn')}`, comparable(object)];
    }),
  );
}

/** ConfigMaps that the API server and controllers create. */
const OF_OTHERS = /^kube-root-ca\.crt$|^extension-apiserver|^openshift-|token-tracking$/;

interface WithData {
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: Readonly<Record<string, unknown>> & { readonly taints?: readonly { readonly key: string }[] };
}

function comparable(object: KubeObject & WithData): unknown {
  const { status: _, metadata, spec, data, ...rest } = object as KubeObject & WithData & { readonly status?: unknown };
  const { labels, annotations } = metadata;
  const own = Object.entries(annotations ?? {}).filter(([key]) => !OF_CONTROLLERS.includes(key));
  const { podCIDR: _cidr, podCIDRs: _cidrs, taints, ...kept } = spec ?? {};
  const ownTaints = taints?.filter(({ key }) => !key.startsWith('node.kubernetes.io/'));
  return {
    ...rest,
    labels,
    annotations: Object.fromEntries(own),
    spec: { ...kept, ...(ownTaints === undefined || ownTaints.length === 0 ? {} : { taints: ownTaints }) },
    ...(data === undefined ? {} : { data: comparableData(object.kind, metadata.name, data) }),
  };
}

/** Written by controllers, some time after the object. */
const OF_CONTROLLERS = ['deployment.kubernetes.io/revision', 'node.alpha.kubernetes.io/ttl'];

function comparableData(kind: string, name: string, data: Readonly<Record<string, string>>): unknown {
  if (name.startsWith('bootstrap-token-')) {
    const { 'token-id': _id, 'token-secret': _secret, expiration, ...others } = data;
    return { ...others, expires: expiration !== undefined };
  }
  if (kind === 'Secret') return Object.keys(data).sort();
  if (name === 'cluster-info') return readable(parse(data.kubeconfig ?? ''));
  return data;
}

const readable = (config: { clusters: { cluster: Record<string, string> }[] }): unknown => ({
  ...config,
  clusters: config.clusters.map(({ cluster: { 'certificate-authority-data': ca, ...cluster } }) => ({
    ...cluster,
    hasCa: ca !== undefined,
  })),
});
