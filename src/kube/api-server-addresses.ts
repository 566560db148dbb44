import * as z from 'zod';
import { type Cidr, parseCidr } from '../base/text/ip.ts';
import type { KubeObject } from './object.ts';
import { readObject } from './read-object.ts';

/** The Service of the API server inside the cluster, and its Endpoints. */
export const API_SERVER_SERVICE = { namespace: 'default', name: 'kubernetes' } as const;

const text = z.string();
const texts = z.array(text).nullish();
const endpointAddresses = z.array(z.object({ ip: text, hostname: text.nullish() })).nullish();
const ENDPOINTS = z.object({
  subsets: z.array(z.object({ addresses: endpointAddresses, notReadyAddresses: endpointAddresses })).nullish(),
});
const ENDPOINT_SLICE = z.object({ endpoints: z.array(z.object({ addresses: texts, hostname: text.nullish() })).nullish() });
const SERVICE_CIDR = z.object({ spec: z.object({ cidrs: texts }).nullish() });
const ingress = z.array(z.object({ ip: text.nullish(), hostname: text.nullish() })).nullish();
const SERVICE = z.object({
  spec: z.object({ clusterIP: text.nullish(), clusterIPs: texts, externalIPs: texts, loadBalancerIP: text.nullish() }).nullish(),
  status: z.object({ loadBalancer: z.object({ ingress }).nullish() }).nullish(),
});

/** Of Endpoints, ready or not. @throws AppError CLUSTER_ANSWER_INVALID, as all functions of this file */
export function addressesOfEndpoints(object: KubeObject): readonly string[] {
  const { subsets } = readObject(ENDPOINTS, object);
  return (subsets ?? [])
    .flatMap(({ addresses, notReadyAddresses }) => [...(addresses ?? []), ...(notReadyAddresses ?? [])])
    .flatMap(({ ip, hostname }) => present(ip, hostname));
}

export function addressesOfEndpointSlice(object: KubeObject): readonly string[] {
  const { endpoints } = readObject(ENDPOINT_SLICE, object);
  return (endpoints ?? []).flatMap(({ addresses, hostname }) => present(...(addresses ?? []), hostname));
}

export function subnetsOfServiceCidr(object: KubeObject): readonly Cidr[] {
  return (readObject(SERVICE_CIDR, object).spec?.cidrs ?? []).flatMap((cidr) => parseCidr(cidr) ?? []);
}

export function clusterIpsOfService(object: KubeObject): readonly string[] {
  const { spec } = readObject(SERVICE, object);
  return present(spec?.clusterIP, ...(spec?.clusterIPs ?? [])).filter((address) => address !== 'None');
}

/** External addresses and host names of a Service: external IPs and those of its load balancer. */
export function externalAddressesOfService(object: KubeObject): readonly string[] {
  const { spec, status } = readObject(SERVICE, object);
  const balancer = (status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }) => [ip, hostname]);
  return present(...(spec?.externalIPs ?? []), spec?.loadBalancerIP, ...balancer);
}

function present(...values: readonly (string | null | undefined)[]): readonly string[] {
  return values.filter((value): value is string => value !== null && value !== undefined && value !== '');
}
