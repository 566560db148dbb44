import { isJsonObject } from '../../src/base/json.ts';
import type { ResourceType } from '../../src/kube/resources.ts';
import { isCustomType } from './custom-type.ts';
import { memberOf } from './members.ts';

/** Short names and subresources for discovery, by kind. */
const EXTRAS: Readonly<Record<string, { readonly shortNames?: readonly string[]; readonly subresources?: readonly string[] }>> = {
  ConfigMap: { shortNames: ['cm'] },
  Endpoints: { shortNames: ['ep'] },
  Event: { shortNames: ['ev'] },
  Namespace: { shortNames: ['ns'], subresources: ['finalize', 'status'] },
  Node: { shortNames: ['no'], subresources: ['status'] },
  PersistentVolume: { shortNames: ['pv'], subresources: ['status'] },
  PersistentVolumeClaim: { shortNames: ['pvc'], subresources: ['status'] },
  Pod: { shortNames: ['po'], subresources: ['eviction', 'status'] },
  NetworkPolicy: { shortNames: ['netpol'] },
  PodDisruptionBudget: { shortNames: ['pdb'], subresources: ['status'] },
  ReplicationController: { shortNames: ['rc'], subresources: ['status'] },
  ReplicaSet: { shortNames: ['rs'], subresources: ['status'] },
  StatefulSet: { shortNames: ['sts'], subresources: ['status'] },
  ServiceAccount: { shortNames: ['sa'], subresources: ['token'] },
  Service: { shortNames: ['svc'], subresources: ['status'] },
  DaemonSet: { shortNames: ['ds'], subresources: ['status'] },
  Deployment: { shortNames: ['deploy'], subresources: ['status'] },
  CustomResourceDefinition: { shortNames: ['crd', 'crds'], subresources: ['status'] },
  Job: { subresources: ['status'] },
  CertificateSigningRequest: { shortNames: ['csr'], subresources: ['approval', 'status'] },
};

export function shortNamesOf(type: ResourceType): readonly string[] {
  return isCustomType(type) ? type.shortNames : (EXTRAS[type.kind]?.shortNames ?? []);
}

export function subresourcesOf(type: ResourceType): readonly string[] {
  if (!isCustomType(type)) return EXTRAS[type.kind]?.subresources ?? [];
  return isJsonObject(memberOf(type.definition, 'subresources').status) ? ['status'] : [];
}

/** `configmaps`, `leases.coordination.k8s.io`: the API server's name of a resource in messages. */
export function qualifiedResource(type: Pick<ResourceType, 'group' | 'plural'>): string {
  return type.group === '' ? type.plural : `${type.plural}.${type.group}`;
}
