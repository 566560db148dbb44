import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';

/** Written from the API types of kubernetes-sigs/cluster-api (api/core, api/bootstrap/kubeadm and api/runtime/hooks, main of 2026-08). */
export const HOOKS_API_VERSION = 'hooks.runtime.cluster.x-k8s.io/v1alpha1';
const PATCH_FILE = '/etc/kubernetes/patches/kubeletconfiguration.yaml';
export const UPDATE_IN_PROGRESS = 'in-place-updates.internal.cluster.x-k8s.io/update-in-progress';

export interface ObjectOptions {
  readonly version?: string;
  /** Version of the API of Cluster API. */
  readonly api?: 'v1beta1' | 'v1beta2';
}

/** A KubeadmConfigSpec with other files, and these kubelet patch files. */
export function kubeadmConfigSpec(patches: readonly JsonObject[], { api = 'v1beta2' }: ObjectOptions = {}): JsonObject {
  const args = { 'node-labels': 'pool=edge' };
  const kubeletExtraArgs = api === 'v1beta1' ? args : Object.entries(args).map(([name, value]) => ({ name, value }));
  return {
    joinConfiguration: {
      nodeRegistration: { name: '{{ ds.meta_data.local_hostname }}', kubeletExtraArgs },
      patches: { directory: '/etc/kubernetes/patches' },
    },
    files: [
      { path: '/etc/motd', content: 'hello\n', owner: 'root:root', permissions: '0644' },
      { path: '/etc/kubernetes/patches/etcd.yaml', content: 'spec: {}\n' },
      ...patches,
      { path: '/etc/secret', contentFrom: { secret: { name: 's', key: 'k' } } },
    ],
    preKubeadmCommands: ['hostnamectl set-hostname node'],
    format: 'cloud-config',
  };
}

export function patchFile(content: string, more: JsonObject = {}): JsonObject {
  return { path: PATCH_FILE, content, owner: 'root:root', permissions: '0600', ...more };
}

export function machine({ version = 'v1.36.2', api = 'v1beta2' }: ObjectOptions = {}): KubeObject {
  const group = api === 'v1beta1' ? { apiVersion: 'bootstrap.cluster.x-k8s.io/v1beta1' } : { apiGroup: 'bootstrap.cluster.x-k8s.io' };
  return {
    apiVersion: `cluster.x-k8s.io/${api}`,
    kind: 'Machine',
    metadata: { name: 'edge-1', namespace: 'fleet', labels: { 'cluster.x-k8s.io/cluster-name': 'edge' } },
    spec: {
      clusterName: 'edge',
      version,
      bootstrap: { configRef: { ...group, kind: 'KubeadmConfig', name: 'edge-1' }, dataSecretName: 'edge-1' },
      infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'DevMachine', name: 'edge-1' },
      providerID: 'dev:////edge-1',
    },
  };
}

export function kubeadmConfig(spec: JsonObject, { api = 'v1beta2' }: ObjectOptions = {}): KubeObject {
  return {
    apiVersion: `bootstrap.cluster.x-k8s.io/${api}`,
    kind: 'KubeadmConfig',
    metadata: { name: 'edge-1', namespace: 'fleet' },
    spec,
  };
}

const INFRASTRUCTURE = {
  apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2',
  kind: 'DevMachine',
  metadata: { name: 'edge-1', namespace: 'fleet' },
  spec: { backend: {} },
};

/** A CanUpdateMachineRequest. */
export function canUpdateMachine(current: JsonObject, desired: JsonObject, options: ObjectOptions = {}): JsonObject {
  const objects = (spec: JsonObject): JsonObject => ({
    machine: machine(options),
    infrastructureMachine: INFRASTRUCTURE,
    bootstrapConfig: kubeadmConfig(spec, options),
  });
  return {
    apiVersion: HOOKS_API_VERSION,
    kind: 'CanUpdateMachineRequest',
    settings: {},
    current: objects(current),
    desired: objects(desired),
  };
}

/** A CanUpdateMachineSetRequest. */
export function canUpdateMachineSet(current: JsonObject, desired: JsonObject, options: ObjectOptions = {}): JsonObject {
  const { apiVersion, spec: machineSpec = {} } = machine(options);
  const metadata = { name: 'edge', namespace: 'fleet' };
  const objects = (spec: JsonObject): JsonObject => ({
    machineSet: {
      apiVersion,
      kind: 'MachineSet',
      metadata,
      spec: { clusterName: 'edge', replicas: 3, template: { metadata: {}, spec: machineSpec } },
    },
    infrastructureMachineTemplate: {
      ...INFRASTRUCTURE,
      kind: 'DevMachineTemplate',
      metadata,
      spec: { template: { spec: { backend: {} } } },
    },
    bootstrapConfigTemplate: { ...kubeadmConfig({}, options), kind: 'KubeadmConfigTemplate', metadata, spec: { template: { spec } } },
  });
  return { apiVersion: HOOKS_API_VERSION, kind: 'CanUpdateMachineSetRequest', current: objects(current), desired: objects(desired) };
}

/** An UpdateMachineRequest. */
export function updateMachine(spec: JsonObject, options: ObjectOptions = {}): JsonObject {
  const desired = { machine: machine(options), infrastructureMachine: INFRASTRUCTURE, bootstrapConfig: kubeadmConfig(spec, options) };
  return { apiVersion: HOOKS_API_VERSION, kind: 'UpdateMachineRequest', desired };
}

/** Definitions of the kinds that the extension reads, with all fields kept. */
export function definitions(): readonly KubeObject[] {
  return [definition('cluster.x-k8s.io', 'Machine'), definition('bootstrap.cluster.x-k8s.io', 'KubeadmConfig')];
}

/** The last version is stored. */
export function definition(group: string, kind: string, names = ['v1beta1', 'v1beta2'], scope = 'Namespaced'): KubeObject {
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: open, status: open } } };
  const plural = `${kind.toLowerCase()}s`;
  const versions = names.map((name) => ({ name, served: true, storage: name === names.at(-1), schema }));
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' } },
    spec: { group, scope, names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` }, versions },
  };
}

/** An object with a patch applied as Cluster API does: only operations that set the content of files are known here. */
export function patchedObject(object: JsonObject, patch: { readonly patchType: string; readonly patch: string } | undefined): JsonObject {
  if (patch === undefined) return object;
  if (patch.patchType !== 'JSONPatch') throw new Error(`patchType ${patch.patchType}`);
  const copy = structuredClone(object) as Record<string, unknown>;
  for (const { op, path, value } of JSON.parse(Buffer.from(patch.patch, 'base64').toString('utf8'))) {
    const names = (path as string).split('/').slice(1);
    const last = names.pop() as string;
    const target = names.reduce<Record<string, unknown>>((at, name) => at[name] as Record<string, unknown>, copy);
    if (op !== 'add' || !Object.hasOwn(target, last)) throw new Error(`unexpected operation ${op} ${path}`);
    target[last] = value;
  }
  return copy as JsonObject;
}
