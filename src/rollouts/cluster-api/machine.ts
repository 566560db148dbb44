import * as z from 'zod';
import { AppError } from '../../base/errors.ts';
import { Secret, SensitiveText } from '../../base/text/secret.ts';
import { canonicalJson } from '../../codec/json-text.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { rebuildHostKubeconfig } from '../../kube/host-kubeconfig.ts';
import { type KubeletPatches, kubeadmConfigSpec, readKubeletPatches } from './kubelet-patches.ts';

const metadata = z.looseObject({ name: z.string().min(1), namespace: z.string().min(1) });

/**
 * A Machine, as far as it is used; the same in v1beta1 and v1beta2.
 * @see kubernetes-sigs/cluster-api api/core/v1beta2/machine_types.go
 */
const machineSchema = z.looseObject({
  apiVersion: z.enum(['cluster.x-k8s.io/v1beta1', 'cluster.x-k8s.io/v1beta2']),
  kind: z.literal('Machine'),
  metadata,
  spec: z.looseObject({
    clusterName: z.string().min(1),
    version: z.string().optional(),
    providerID: z.string().optional(),
    bootstrap: z.looseObject({ configRef: z.looseObject({ kind: z.string(), name: z.string() }).optional() }).optional(),
  }),
  status: z.looseObject({ nodeRef: z.looseObject({ name: z.string() }).optional() }).optional(),
});
type Machine = z.output<typeof machineSchema>;

const kubeadmConfigSchema = z.looseObject({
  apiVersion: z.enum(['bootstrap.cluster.x-k8s.io/v1beta1', 'bootstrap.cluster.x-k8s.io/v1beta2']),
  kind: z.literal('KubeadmConfig'),
  metadata,
  spec: kubeadmConfigSpec,
});

/** The objects of an UpdateMachine request. */
export const updateRequest = z.looseObject({ desired: z.looseObject({ machine: machineSchema, bootstrapConfig: kubeadmConfigSchema }) });
export type DesiredObjects = z.output<typeof updateRequest>['desired'];

/** On a Machine while it is updated in place. */
const UPDATE_IN_PROGRESS = 'in-place-updates.internal.cluster.x-k8s.io/update-in-progress';

/** A Machine whose node is to be updated. */
export interface StoredMachine {
  readonly namespace: string;
  readonly name: string;
  readonly clusterName: string;
  readonly version: string;
  readonly providerId: string | undefined;
  readonly nodeName: string;
  readonly fields: KubeletPatches['fields'];
}

/** @param why a clause */
export function notUpdated(why: string, hint?: string): AppError {
  return new AppError({ code: 'MACHINE_NOT_UPDATED', message: why, hint });
}

/**
 * Reads the Machine of a request and its kubelet patches from the management cluster: anyone who can reach the port can send a
 * request, but only authorized clients can write these objects.
 * @throws AppError MACHINE_NOT_UPDATED if they differ from the request, or no update is in progress
 */
export async function readMachine(management: Cluster, { machine, bootstrapConfig }: DesiredObjects): Promise<StoredMachine> {
  const { namespace, name } = machine.metadata;
  const what = `Machine ${namespace}/${name}`;
  const stored = read(machineSchema, await management.get({ apiVersion: machine.apiVersion, kind: 'Machine', namespace, name }), what);
  const { configRef } = stored.spec.bootstrap ?? {};
  if (stored.metadata.deletionTimestamp !== undefined) throw notUpdated(`${what} is being deleted`);
  if (!Object.hasOwn((stored.metadata.annotations ?? {}) as object, UPDATE_IN_PROGRESS))
    throw notUpdated(`no update in place of ${what} is in progress`);
  if (configRef?.kind !== 'KubeadmConfig') throw notUpdated(`${what} has no KubeadmConfig`);
  const other = differingMember(stored, machine) ?? (configRef.name !== bootstrapConfig.metadata.name ? 'bootstrapConfig' : null);
  if (other !== null) throw notUpdated(`the request differs from ${what} in ${other}`);
  const nodeName = stored.status?.nodeRef?.name;
  if (nodeName === undefined) throw notUpdated(`${what} has no Node yet`);
  const ref = { apiVersion: bootstrapConfig.apiVersion, kind: 'KubeadmConfig', namespace, name: configRef.name };
  const config = read(kubeadmConfigSchema, await management.get(ref), `KubeadmConfig ${namespace}/${configRef.name}`);
  const [patches, requested] = [readKubeletPatches(config.spec), readKubeletPatches(bootstrapConfig.spec)];
  if ('unreadable' in patches) throw notUpdated(`KubeadmConfig ${namespace}/${configRef.name}: ${patches.unreadable}`);
  if ('unreadable' in requested || canonicalJson(patches.fields) !== canonicalJson(requested.fields))
    throw notUpdated(`the request differs from KubeadmConfig ${namespace}/${configRef.name} in its kubelet patches`);
  const { clusterName, version = '', providerID: providerId } = stored.spec;
  return { namespace, name, clusterName, version, providerId, nodeName, fields: patches.fields };
}

function read<T>(schema: z.ZodType<T>, object: unknown, what: string): T {
  if (object === null) throw notUpdated(`${what} does not exist`);
  const parsed = schema.safeParse(object);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw notUpdated(`${what}: ${issue?.path.join('.')}: ${issue?.message}`);
}

function differingMember(stored: Machine, { spec }: Machine): string | null {
  if (stored.spec.clusterName !== spec.clusterName) return 'spec.clusterName';
  if (stored.spec.version !== spec.version) return 'spec.version';
  return stored.spec.bootstrap?.configRef?.name === spec.bootstrap?.configRef?.name ? null : 'spec.bootstrap.configRef';
}

/**
 * The kubeconfig of the workload cluster, which Cluster API stores as a Secret. It may name no program and no file.
 * @throws AppError MACHINE_NOT_UPDATED, and those of `rebuildHostKubeconfig`
 */
export async function readWorkloadKubeconfig(
  management: Cluster,
  { namespace, clusterName }: Pick<StoredMachine, 'namespace' | 'clusterName'>,
) {
  const name = `${clusterName}-kubeconfig`;
  const secret = await management.get({ apiVersion: 'v1', kind: 'Secret', namespace, name });
  const value = z.looseObject({ data: z.looseObject({ value: z.base64().min(1) }) }).safeParse(secret);
  if (!value.success) throw notUpdated(`Secret ${namespace}/${name} with the key value does not exist`);
  const text = new SensitiveText([new Secret(Buffer.from(value.data.data.value, 'base64').toString('utf8'))]);
  const hint = 'Give the Secret a kubeconfig with a CA and a client certificate or a token';
  return rebuildHostKubeconfig({ host: `Secret ${namespace}/${name}`, path: 'value', text, readFile: async () => null, hint });
}
