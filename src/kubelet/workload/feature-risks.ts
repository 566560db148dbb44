import { jsonEqual } from '../../base/json.ts';
import { type FeatureGates, resolveFeatureGates } from '../catalogue/feature-gates.ts';
import { gatesOf } from '../defaults/effective-configuration.ts';
import { numberAt, objectAt, textAt } from '../documents/values.ts';
import { POD_FEATURES, type PodFeature, type PodFeatureGate } from './pod.ts';
import { exit, loss, namesOf, type PodRisk, presentPods, warning } from './pod-risk.ts';
import type { RiskInput } from './risk-input.ts';

/** Without this gate, the kubelet compares no pod with its declared features. */
const DECLARED = 'NodeDeclaredFeatures';
const USER_NAMESPACES = 'UserNamespacesSupport';

/**
 * Features that the next kubelet no longer has: it admits all pods of the node again at its start, and rejects those
 * that need one. Which pods need a feature that this program does not know is not reported, only the feature.
 */
export function featureRisks(input: RiskInput): readonly PodRisk[] {
  return [...gateRisks(input), ...idRangeRisks(input), ...runtimeRisks(input)];
}

function gateRisks({ before, after, minor, catalogue, pods, node }: RiskInput): readonly PodRisk[] {
  const path = 'featureGates';
  if (before !== null && jsonEqual(objectAt(before, path), objectAt(after, path))) return [];
  const gates = resolveFeatureGates(gatesOf(after), minor, catalogue);
  const known = (Object.entries(POD_FEATURES) as [PodFeatureGate, PodFeature][]).flatMap(([gate, feature]) => {
    const users = namesOf(presentPods(pods, ({ features = [] }) => features.includes(gate)));
    return users.length === 0 || !isOff(gate, { minor, catalogue }, gates) || !isEnforced(feature, gates)
      ? []
      : [riskOf(`${path}.${gate}`, gate, feature, users)];
  });
  const unknown = (node?.declaredFeatures ?? []).filter((name) => !(name in POD_FEATURES) && isOff(name, { minor, catalogue }, gates));
  const warnings = unknown.map((name): PodRisk => {
    const why = `the Node would no longer declare the feature ${name}, whose gate is off: the kubelet rejects pods that need it`;
    return warning(`${path}.${name}`, why);
  });
  return [...known, ...warnings];
}

function isEnforced({ rejectedAs }: PodFeature, gates: FeatureGates): boolean {
  return rejectedAs !== 'PodFeatureUnsupported' || gates.isEnabled(DECLARED);
}

function isOff(name: string, { minor, catalogue }: Pick<RiskInput, 'minor' | 'catalogue'>, gates: FeatureGates): boolean {
  return catalogue.gate(name, minor) !== null && !gates.isEnabled(name);
}

function riskOf(path: string, gate: string, { of, rejectedAs }: PodFeature, users: readonly string[]): PodRisk {
  const off = `the gate ${gate} is off`;
  return rejectedAs === null
    ? loss(path, `${off}: no container of pods with ${of} could be started again (${users.join(', ')})`)
    : loss(path, `${off}: the kubelet rejects pods with ${of} (${rejectedAs})`, users);
}

const IDS_PER_POD = 65_536;

/**
 * The kubelet does not start with pods whose user namespace has another length.
 * @see kubernetes/kubernetes pkg/kubelet/userns/userns_manager.go record: `wrong user namespace length` (1.36)
 */
function idRangeRisks({ before, after, pods }: RiskInput): readonly PodRisk[] {
  const path = 'userNamespaces.idsPerPod';
  if (before === null) return [];
  const [then, now] = [before, after].map((config) => numberAt(config, path) ?? IDS_PER_POD);
  const users = namesOf(presentPods(pods, ({ features = [] }) => features.includes(USER_NAMESPACES)));
  if (then === now || users.length === 0) return [];
  const why = `${path} changes from ${then} to ${now}: the kubelet would exit until the pods with hostUsers: false are removed (${users.join(', ')})`;
  return [exit(path, why)];
}

/**
 * Pods with a user namespace on a runtime without them, or on another runtime, whose features are not known before its
 * kubelet has started.
 * @see kubernetes/kubernetes pkg/kubelet/userns GetOrCreateUserNamespaceMappings: `runtime does not support user
 *   namespaces`, pkg/kubelet/kubelet_getters.go HandlerSupportsUserNamespaces (1.36)
 */
function runtimeRisks({ before, after, minor, catalogue, pods, node }: RiskInput): readonly PodRisk[] {
  const users = namesOf(presentPods(pods, ({ features = [] }) => features.includes(USER_NAMESPACES)));
  if (before === null || users.length === 0) return [];
  const effect = `no container of pods with hostUsers: false could be started again (${users.join(', ')})`;
  const isOn = (config: RiskInput['after']): boolean => resolveFeatureGates(gatesOf(config), minor, catalogue).isEnabled(USER_NAMESPACES);
  if (!isOn(before) && isOn(after) && node?.hasUserNamespaces === false) {
    return [loss(`featureGates.${USER_NAMESPACES}`, `the container runtime does not support user namespaces: ${effect}`)];
  }
  const path = 'containerRuntimeEndpoint';
  if (textAt(before, path) === textAt(after, path)) return [];
  return [warning(path, `${path} changes: if the new runtime does not support user namespaces, ${effect}`)];
}
