import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';

/** A feature that pods use. */
export interface PodFeature {
  /** `pods with ...`. */
  readonly of: string;
  /** The reason of the kubelet for a rejected pod; null: the pod runs on, but its containers cannot be started again. */
  readonly rejectedAs: string | null;
}

/**
 * The features that a kubelet needs for a pod, by their gate. A Node declares a feature under the name of its gate.
 * @see k8s.io/component-helpers nodedeclaredfeatures/features, pkg/kubelet/lifecycle/handlers.go
 *   declaredFeaturesAdmitHandler, features_linux.go isPodLevelResourcesSupported, pkg/kubelet/userns
 *   GetOrCreateUserNamespaceMappings (1.36)
 */
export const POD_FEATURES = {
  RestartAllContainersOnContainerExits: { of: 'a restart rule RestartAllContainers', rejectedAs: 'PodFeatureUnsupported' },
  UserNamespacesHostNetworkSupport: { of: 'hostUsers: false and hostNetwork: true', rejectedAs: 'PodFeatureUnsupported' },
  PodLevelResources: { of: 'resources of the pod', rejectedAs: 'PodLevelResourcesNotSupported' },
  UserNamespacesSupport: { of: 'hostUsers: false', rejectedAs: null },
} as const satisfies Readonly<Record<string, PodFeature>>;

export type PodFeatureGate = keyof typeof POD_FEATURES;

/** The features that a pod with this `spec` needs. */
export function podFeatures(spec: JsonObject): readonly PodFeatureGate[] {
  const { hostUsers, hostNetwork, resources, containers, initContainers } = spec;
  const all = [...objectsOf(containers), ...objectsOf(initContainers)];
  const restartsAll = all.some(({ restartPolicyRules }) =>
    objectsOf(restartPolicyRules).some(({ action }) => action === 'RestartAllContainers'),
  );
  const isSet = (value: Json | undefined): boolean => isJsonObject(value) && Object.keys(value).length > 0;
  const needs: Readonly<Record<PodFeatureGate, boolean>> = {
    RestartAllContainersOnContainerExits: restartsAll,
    UserNamespacesHostNetworkSupport: hostUsers === false && hostNetwork === true,
    PodLevelResources: isJsonObject(resources) && (isSet(resources.requests) || isSet(resources.limits)),
    UserNamespacesSupport: hostUsers === false,
  };
  return (Object.keys(needs) as PodFeatureGate[]).filter((gate) => needs[gate]);
}

function objectsOf(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
