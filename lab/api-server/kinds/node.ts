import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../../../src/base/json.ts';
import { label, labelKey, labelValue, subdomain } from '../../../src/kube/name-rules.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { itemsOf, memberOf, textOf, textsOf, withMember } from '../members.ts';
import { configKey } from '../name-rules.ts';
import { type Cause, forbiddenValue, invalidValue, nameCauses, requiredValue, unsupportedValue } from '../status.ts';
import type { KindRules, WriteContext } from './kind.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';
const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];
const NODE_INFO = [
  'machineID',
  'systemUUID',
  'bootID',
  'kernelVersion',
  'osImage',
  'containerRuntimeVersion',
  'kubeletVersion',
  'kubeProxyVersion',
  'operatingSystem',
  'architecture',
];

/** @see kubernetes/kubernetes pkg/registry/core/node/strategy.go, pkg/apis/core/validation (1.36) */
export const nodes: KindRules = {
  fields: (node) => ({ 'spec.unschedulable': String(memberOf(node, 'spec').unschedulable === true) }),
  prepareCreate: (node, context) => completeStatus(completeSpec(taintNotReady(dropDynamicConfig(node, null, context)))),
  prepareUpdate: (node, old, context) => {
    const merged =
      context.subresource === 'status'
        ? { ...node, spec: old.spec ?? {}, status: node.status ?? {} }
        : { ...node, spec: node.spec ?? {}, status: old.status ?? {} };
    return completeStatus(completeSpec(dropDynamicConfig(merged, old, context)));
  },
  validate: (node, old) => [
    ...itemsOf(memberOf(node, 'spec'), 'taints').flatMap((taint, index) => taintCauses(taint, `metadata.taints[${index}]`)),
    ...(old ? [...frozenCauses(node, old), ...configCauses(node)] : []),
  ],
};

/** The admission of a new Node: it accepts no pods until it becomes Ready. */
function taintNotReady(node: KubeObject): KubeObject {
  const spec = memberOf(node, 'spec');
  const taints = itemsOf(spec, 'taints');
  if (taints.some((taint) => taint.key === NOT_READY && taint.effect === 'NoSchedule')) return node;
  return { ...node, spec: { ...spec, taints: [...taints, { key: NOT_READY, effect: 'NoSchedule' }] } };
}

function dropDynamicConfig(node: KubeObject, old: KubeObject | null, { gates }: WriteContext): KubeObject {
  if (gates.dynamicKubeletConfig) return node;
  const inUse = (member: string, field: string) => memberOf(old ?? undefined, member)[field] !== undefined;
  const without = (object: KubeObject, member: string, field: string) =>
    inUse(member, field) || object[member] === undefined
      ? object
      : { ...object, [member]: withMember(memberOf(object, member), field, undefined) };
  return without(without(node, 'spec', 'configSource'), 'status', 'config');
}

/** `podCIDR` is the first of `podCIDRs`; if they differ, `podCIDR` wins. */
function completeSpec(node: KubeObject): KubeObject {
  const spec = memberOf(node, 'spec');
  const [podCIDR, [first]] = [textOf(spec, 'podCIDR'), textsOf(spec, 'podCIDRs')];
  if (podCIDR !== '' && podCIDR !== first) return { ...node, spec: { ...spec, podCIDRs: [podCIDR] } };
  return { ...node, spec: first === undefined ? spec : { ...spec, podCIDR: first } };
}

/** Members of the status that are always sent, even when empty. */
function completeStatus(node: KubeObject): KubeObject {
  const status = memberOf(node, 'status');
  const conditions = itemsOf(status, 'conditions').map((condition) => ({
    lastHeartbeatTime: null,
    lastTransitionTime: null,
    ...condition,
  }));
  const info = Object.fromEntries(NODE_INFO.map((name) => [name, '']));
  return {
    ...node,
    status: {
      ...status,
      ...(conditions.length > 0 ? { conditions } : {}),
      daemonEndpoints: { kubeletEndpoint: { Port: 0 }, ...memberOf(status, 'daemonEndpoints') },
      nodeInfo: { ...info, ...memberOf(status, 'nodeInfo') },
    },
  };
}

function taintCauses(taint: JsonObject, field: string): readonly Cause[] {
  const [key, value, effect] = ['key', 'value', 'effect'].map((name) => textOf(taint, name)) as [string, string, string];
  const effectCauses =
    effect === ''
      ? [requiredValue(`${field}.effect`)]
      : EFFECTS.includes(effect)
        ? []
        : [unsupportedValue(`${field}.effect`, effect, EFFECTS)];
  return [...nameCauses(labelKey, `${field}.key`, key), ...nameCauses(labelValue, `${field}.value`, value), ...effectCauses];
}

/** Fields that cannot be changed once set. */
function frozenCauses(node: KubeObject, old: KubeObject): readonly Cause[] {
  const [spec, before] = [memberOf(node, 'spec'), memberOf(old, 'spec')];
  const cidrs = textsOf(before, 'podCIDRs');
  const moved = cidrs.length > 0 && !jsonEqual(cidrs, textsOf(spec, 'podCIDRs'));
  const provider = textOf(before, 'providerID');
  return [
    ...(moved ? [forbiddenValue('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid')] : []),
    ...(provider !== '' && provider !== textOf(spec, 'providerID')
      ? [forbiddenValue('spec.providerID', 'node updates may not change providerID except from "" to valid')]
      : []),
  ];
}

/** Dynamic kubelet configuration. A stored one is validated even when the feature is off. */
function configCauses(node: KubeObject): readonly Cause[] {
  const source = memberOf(node, 'spec').configSource;
  const config = memberOf(memberOf(node, 'status'), 'config');
  const assigned = (['assigned', 'active', 'lastKnownGood'] as const).filter((name) => config[name] !== undefined);
  return [
    ...(source === undefined ? [] : sourceCauses(source, 'spec.configSource', 'spec')),
    ...assigned.flatMap((name) => sourceCauses(config[name] ?? null, `status.config.${name}`, 'status')),
  ];
}

function sourceCauses(source: Json, field: string, place: 'spec' | 'status'): readonly Cause[] {
  const map = isJsonObject(source) ? source.configMap : undefined;
  if (!isJsonObject(map)) return [invalidValue(field, '{}', 'exactly one reference subfield must be non-nil')];
  const at = `${field}.configMap`;
  const versions = ['uid', 'resourceVersion'] as const;
  return [
    ...(place === 'spec'
      ? versions
          .filter((name) => textOf(map, name) !== '')
          .map((name) => forbiddenValue(`${at}.${name}`, `${name} must not be set in spec`))
      : versions.filter((name) => textOf(map, name) === '').map((name) => requiredValue(`${at}.${name}`, `${name} must be set in status`))),
    ...required(map, 'namespace', at, label),
    ...required(map, 'name', at, subdomain),
    ...required(map, 'kubeletConfigKey', at, configKey),
  ];
}

function required(map: JsonObject, name: string, at: string, rule: typeof label): readonly Cause[] {
  const value = textOf(map, name);
  return value === '' ? [requiredValue(`${at}.${name}`, `${name} must be set`)] : nameCauses(rule, `${at}.${name}`, value);
}
