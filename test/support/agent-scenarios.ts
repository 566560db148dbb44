import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { CONFIG_SOURCE_ANNOTATION, CONFIG_STATUS_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';

const E1 = 'failed to load config, see Kubelet log for details';
const E2 = 'failed to validate config, see Kubelet log for details';
const E4 = 'failed to sync: failed to download config, see Kubelet log for details';

/**
 * A node with an agent and its ConfigMaps. The scenarios are the same for simulated and for real kubelets.
 */
export interface ScenarioNode {
  /** Creates a ConfigMap; a string becomes the value of the key `kubelet`. */
  create(name: string, data: string | JsonObject): Promise<void>;
  edit(name: string, change: string | JsonObject): Promise<void>;
  remove(name: string): Promise<void>;
  /** `a` or `a.key`; null removes the assignment. */
  assign(what: string | null): Promise<void>;
  /** Waits until the Node reports this status, in the notation of `SCENARIOS`. */
  reports(status: JsonObject): Promise<void>;
  /** Waits until the assigned configuration is the last known good one. */
  good(): Promise<void>;
}

/** Payloads of ConfigMaps. Their values of maxPods differ. */
export const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
export const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';
const GOOD_A = `${OVERLAY}maxPods: 50\n`;
const GOOD_B = `${OVERLAY}maxPods: 51\n`;
const BAD = '{0xdeadbeef}';
const INVALID = `${OVERLAY}kubeAPIQPS: -1\n`;

export interface Scenario {
  readonly number: number;
  readonly title: string;
  /** Starts on a node with its local configuration and without ConfigMaps. */
  readonly play: (node: ScenarioNode) => Promise<void>;
  /**
   * The status at the end: `a@2.key` is the second version of the ConfigMap with the name a; the key
   * `kubelet` is omitted.
   */
  readonly status: JsonObject;
  /** The number of kubelet restarts. */
  readonly restarts: number;
}

const TRIAL_A = { assigned: 'a@1', active: 'a@1' };
const GOOD_STATUS = { ...TRIAL_A, lastKnownGood: 'a@1' };

async function goodA(node: ScenarioNode): Promise<void> {
  await node.create('a', GOOD_A);
  await node.assign('a');
  await node.good();
}

function refused(text: string | JsonObject): Scenario['play'] {
  return async (node) => {
    await node.create('b', text);
    await node.assign('b');
  };
}

function scenario(number: number, title: string, play: Scenario['play'], status: JsonObject, restarts: number): Scenario {
  return { number, title, play, status, restarts };
}

/**
 * The conformance scenarios of the kubelet's dynamic configuration, by number, as far as they apply to the
 * agent. The agent reports without a restart some results that the kubelet reports after one.
 */
export const SCENARIOS: readonly Scenario[] = [
  scenario(
    1,
    'any to nil',
    async (node) => {
      await goodA(node);
      await node.assign(null);
    },
    {},
    2,
  ),
  scenario(
    11,
    'nil to good',
    async (node) => {
      await node.create('a', GOOD_A);
      await node.assign('a');
    },
    TRIAL_A,
    1,
  ),
  scenario(12, 'nil to bad', refused(BAD), { assigned: 'b@1', error: E1 }, 0),
  scenario(13, 'nil to invalid', refused(INVALID), { assigned: 'b@1', error: E2 }, 0),
  scenario(
    14,
    'invalid to good',
    async (node) => {
      await refused(INVALID)(node);
      await node.reports({ assigned: 'b@1', error: E2 });
      await node.create('a', GOOD_A);
      await node.assign('a');
    },
    TRIAL_A,
    1,
  ),
  scenario(15, 'healthy for the time of a trial', goodA, GOOD_STATUS, 1),
  scenario(
    16,
    'bad after good, and 17. back: good at once',
    async (node) => {
      await goodA(node);
      await refused(BAD)(node);
      await node.reports({ assigned: 'b@1', active: 'a@1', lastKnownGood: 'a@1', error: E1 });
      await node.assign('a');
    },
    GOOD_STATUS,
    1,
  ),
  scenario(
    18,
    'another key of the same ConfigMap',
    async (node) => {
      await node.create('a', { kubelet: GOOD_A, bad: BAD });
      await node.assign('a');
      await node.good();
      await node.assign('a.bad');
    },
    { assigned: 'a@1.bad', active: 'a@1', lastKnownGood: 'a@1', error: E1 },
    1,
  ),
  scenario(
    19,
    'the last known good moves on',
    async (node) => {
      await goodA(node);
      await node.create('b', GOOD_B);
      await node.assign('b');
      await node.good();
    },
    { assigned: 'b@1', active: 'b@1', lastKnownGood: 'b@1' },
    2,
  ),
  scenario(
    22,
    'bad in place after good, and 23. good again: the same content is the last known good',
    async (node) => {
      await goodA(node);
      await node.edit('a', BAD);
      await node.reports({ assigned: 'a@2', active: 'a@1', lastKnownGood: 'a@1', error: E1 });
      await node.edit('a', GOOD_A);
    },
    { assigned: 'a@3', active: 'a@3', lastKnownGood: 'a@3' },
    1,
  ),
  scenario(
    21,
    'good, invalid and another good in place, without a last known good',
    async (node) => {
      await node.create('a', GOOD_A);
      await node.assign('a');
      await node.reports(TRIAL_A);
      await node.edit('a', INVALID);
      await node.reports({ assigned: 'a@2', error: E2 });
      await node.edit('a', GOOD_B);
    },
    { assigned: 'a@3', active: 'a@3' },
    3,
  ),
  scenario(
    26,
    'a changed label: the new version is reported, without a restart',
    async (node) => {
      await node.create('a', GOOD_A);
      await node.assign('a');
      await node.reports(TRIAL_A);
      await node.edit('a', { metadata: { labels: { x: 'y' } } });
    },
    { assigned: 'a@2', active: 'a@2' },
    1,
  ),
  scenario(
    28,
    'deleted, and 29. created again',
    async (node) => {
      await node.create('a', GOOD_A);
      await node.assign('a');
      await node.reports(TRIAL_A);
      await node.remove('a');
      await node.reports({ ...TRIAL_A, error: E4 });
      await node.create('a', GOOD_A);
    },
    { assigned: 'a@2', active: 'a@2' },
    1,
  ),
  scenario(
    27,
    'deleted and created again with another content',
    async (node) => {
      await goodA(node);
      await node.remove('a');
      await node.create('a', INVALID);
      await node.reports({ assigned: 'a@2', active: 'a@1', lastKnownGood: 'a@1', error: E2 });
      await node.remove('a');
      await node.create('a', GOOD_B);
    },
    { assigned: 'a@3', active: 'a@3', lastKnownGood: 'a@1' },
    2,
  ),
  scenario(
    30,
    'missing at first, and created later',
    async (node) => {
      await node.assign('a');
      await node.reports({ error: E4 });
      await node.create('a', GOOD_A);
    },
    TRIAL_A,
    1,
  ),
  // The kubelet keeps this error until its next restart.
  scenario(
    31,
    'missing, and unassigned',
    async (node) => {
      await node.assign('a');
      await node.reports({ error: E4 });
      await node.assign(null);
    },
    {},
    0,
  ),
  scenario(32, 'without the key', refused({ other: GOOD_A }), { assigned: 'b@1', error: E1 }, 0),
  scenario(32, 'with an empty value', refused(''), { assigned: 'b@1', error: E1 }, 0),
  ...[
    ['without kind and apiVersion', 'maxPods: 50\n'],
    ['of an unknown kind', 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: BogusKind\n'],
    ['of an unknown version', 'apiVersion: kubelet.config.k8s.io/bogusversion\nkind: KubeletConfiguration\n'],
    ['`*`', '*'],
    ['`{*`', '{*'],
  ].map(([title = '', text = '']) => scenario(33, title, refused(text), { assigned: 'b@1', error: E1 }, 0)),
  scenario(
    34,
    'an unknown field, and a duplicate one',
    refused(`${OVERLAY}noSuchField: 1\nmaxPods: 9\nmaxPods: 52\n`),
    { assigned: 'b@1', active: 'b@1' },
    1,
  ),
  scenario(35, 'an unknown feature gate', refused(`${OVERLAY}featureGates: {NoSuchGate: true}\n`), { assigned: 'b@1', error: E2 }, 0),
  scenario(
    36,
    'JSON',
    refused('{"apiVersion": "kubeletadm.dev/v1alpha1", "kind": "KubeletConfigurationOverlay", "maxPods": 53}'),
    { assigned: 'b@1', active: 'b@1' },
    1,
  ),
  scenario(
    37,
    'another file in the same ConfigMap',
    async (node) => {
      await refused({ kubelet: `${OVERLAY}resolvConf: resolv.conf\n`, 'resolv.conf': 'nameserver 10.96.0.10\n' })(node);
      await node.good();
    },
    { assigned: 'b@1', active: 'b@1', lastKnownGood: 'b@1' },
    1,
  ),
];

export interface ScenarioOptions {
  /** With an administrator's credentials. */
  readonly cluster: Cluster;
  readonly nodeName: string;
  /** Resolves when the condition holds. */
  readonly until: (what: string, isTrue: () => Promise<boolean>) => Promise<void>;
}

/** Performs the steps of one scenario on a Node, and reads the reported status. */
export function scenarioNode({ cluster, nodeName, until }: ScenarioOptions): ScenarioNode & { cleanUp(): Promise<void> } {
  const node = { apiVersion: 'v1', kind: 'Node', name: nodeName };
  const ref = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kubeletadm-system', name });
  const versions = new Map<string, string[]>();
  const seen = ({ metadata: { name, uid, resourceVersion } }: KubeObject): void => {
    versions.set(name, [...(versions.get(name) ?? []), `${uid}/${resourceVersion}`]);
  };
  const dataOf = (data: string | JsonObject): JsonObject => (typeof data === 'string' ? { kubelet: data } : data);
  const short = (source: JsonObject): string => {
    const { name, uid, resourceVersion, kubeletConfigKey } = source.configMap as Readonly<Record<string, string>>;
    const number = (versions.get(name ?? '') ?? []).indexOf(`${uid}/${resourceVersion}`) + 1;
    return `${name}@${number}${kubeletConfigKey === 'kubelet' ? '' : `.${kubeletConfigKey}`}`;
  };
  const status = async (): Promise<readonly (readonly string[])[]> => {
    const text = (await cluster.get(node))?.metadata.annotations?.[CONFIG_STATUS_ANNOTATION];
    const reported = Object.entries(JSON.parse(text ?? '{"none":"reported"}') as JsonObject).sort();
    return reported.map(([name, value]) => [name, typeof value === 'string' ? value : short(value as JsonObject)]);
  };
  return {
    create: async (name, data) =>
      seen(
        await cluster.create({
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name, namespace: 'kubeletadm-system' },
          data: dataOf(data),
        }),
      ),
    edit: async (name, change) =>
      seen(await cluster.patch(ref(name), 'merge', typeof change === 'string' ? { data: { kubelet: change } } : change)),
    remove: async (name) => void (await cluster.delete(ref(name))),
    assign: async (what) => {
      const [name = '', kubeletConfigKey = 'kubelet'] = what?.split('.') ?? [];
      const source = what === null ? null : JSON.stringify({ configMap: { namespace: 'kubeletadm-system', name, kubeletConfigKey } });
      await cluster.patch(node, 'merge', { metadata: { annotations: { [CONFIG_SOURCE_ANNOTATION]: source } } });
    },
    reports: async (desired) => {
      let last = '';
      const text = JSON.stringify(Object.entries(desired).sort());
      await until(`it reports ${text}`, async () => {
        last = JSON.stringify(await status());
        return last === text;
      }).catch((error: Error) => {
        throw new Error(`${error.message}; it reports ${last}`);
      });
    },
    good: () =>
      until('the assigned configuration is the last known good one', async () => {
        const { assigned, lastKnownGood } = Object.fromEntries(await status());
        return assigned !== undefined && assigned === lastKnownGood;
      }),
    cleanUp: async () => {
      await cluster.patch(node, 'merge', { metadata: { annotations: { [CONFIG_SOURCE_ANNOTATION]: null } } });
      await until('it is local', async () => (await status()).length === 0);
      for (const name of ['a', 'b']) await cluster.delete(ref(name));
    },
  };
}
