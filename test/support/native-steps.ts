import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { type ConfigIdentity, formatIdentity } from '../../src/kubelet/layers/config-source.ts';

/** Actions of an administrator on one Node and the ConfigMaps of one namespace. */
export interface NativeSteps {
  /** Creates or replaces a ConfigMap. */
  put(name: string, data: Readonly<Record<string, string>>, change?: JsonObject): Promise<KubeObject>;
  remove(name: string): Promise<void>;
  assign(name: string, key?: string): Promise<void>;
  reset(): Promise<void>;
  node(): Promise<KubeObject>;
  spec(): Promise<JsonObject>;
  /** `status.config`, unchanged. */
  status(): Promise<unknown>;
  /** The kubelet's Events about its restarts. */
  events(): Promise<readonly string[]>;
  /** A version of a ConfigMap in the JSON of a status. */
  at(object: KubeObject, key?: string): JsonObject;
  identity(object: KubeObject, key?: string): ConfigIdentity;
}

export interface NativeStepsOptions {
  readonly admin: Pick<Cluster, 'get' | 'list' | 'create' | 'update' | 'patch' | 'delete'>;
  readonly nodeName: string;
  readonly namespace: string;
}

/** The actions of an administrator, with any API server. */
export function nativeSteps({ admin, nodeName, namespace }: NativeStepsOptions): NativeSteps {
  const nodeRef = { apiVersion: 'v1', kind: 'Node', name: nodeName };
  const ref = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name });
  const node = async (): Promise<KubeObject> => (await admin.get(nodeRef)) as KubeObject;
  const identity = ({ metadata }: KubeObject, key = 'kubelet'): ConfigIdentity => ({
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    kubeletConfigKey: key,
  });
  const patch = async (configSource: JsonObject | null): Promise<void> => {
    await admin.patch(nodeRef, 'merge', { spec: { configSource } });
  };
  return {
    put: async (name, data, change = {}) => {
      const { metadata = {}, ...rest } = change as { readonly metadata?: JsonObject };
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, ...metadata }, data, ...rest };
      return (await admin.get(ref(name))) === null ? admin.create(object as KubeObject) : admin.update(object as KubeObject);
    },
    remove: async (name) => void (await admin.delete(ref(name))),
    assign: (name, kubeletConfigKey = 'kubelet') => patch({ configMap: { namespace, name, kubeletConfigKey } }),
    reset: () => patch(null),
    node,
    spec: async () => ((await node()).spec ?? {}) as JsonObject,
    status: async () => ((await node())?.status as JsonObject | undefined)?.config,
    events: async () => {
      const { items } = await admin.list({ apiVersion: 'v1', kind: 'Event', namespace: 'default' });
      return items.filter((event) => isOfNode(event, nodeName)).map(({ message }) => String(message));
    },
    identity,
    at: (object, key) => formatIdentity(identity(object, key)),
  };
}

function isOfNode({ reason, involvedObject }: KubeObject, nodeName: string): boolean {
  return reason === 'KubeletConfigChanged' && (involvedObject as JsonObject | undefined)?.name === nodeName;
}
