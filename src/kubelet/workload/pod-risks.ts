import { alignmentRisks } from './alignment-risks.ts';
import { reservedCgroupRisks } from './cgroup-risks.ts';
import { dnsRisks } from './dns-risks.ts';
import { featureRisks } from './feature-risks.ts';
import { fileRisks, staticPodRisks, sysctlRisks } from './file-risks.ts';
import { imageRisks } from './image-risks.ts';
import type { PodRisk } from './pod-risk.ts';
import type { RiskInput } from './risk-input.ts';
import { evictionRisks, podPidsRisks, podsCgroupRisks, reservationRisks, reservedCpuRisks, roomRisks } from './room-risks.ts';
import { shutdownRisks } from './shutdown-risks.ts';
import { silentRisks, startRisks } from './start-risks.ts';

/**
 * Finds what a change of a kubelet's configuration would end: pods that the kubelet rejects or evicts, static
 * pods that it stops, new pods that cannot start, and values with which it exits. Only fields that the change
 * affects can cause a finding; without the previous configuration, all can. Unknown facts cause none.
 * @returns losses first
 */
export function findPodRisks(input: RiskInput): readonly PodRisk[] {
  const reservations = reservationRisks(input);
  const found = [
    ...reservations,
    // A kubelet that exits rejects no pods.
    ...roomRisks(input).filter(({ path }) => !reservations.some((one) => one.path === path)),
    ...reservedCpuRisks(input),
    ...podsCgroupRisks(input),
    ...reservedCgroupRisks(input),
    ...evictionRisks(input),
    ...podPidsRisks(input),
    ...staticPodRisks(input),
    ...sysctlRisks(input),
    ...featureRisks(input),
    ...alignmentRisks(input),
    ...fileRisks(input),
    ...dnsRisks(input),
    ...imageRisks(input),
    ...startRisks(input),
    ...shutdownRisks(input),
    ...silentRisks(input),
  ];
  return [...found.filter(({ severity }) => severity === 'loss'), ...found.filter(({ severity }) => severity === 'warning')];
}

/** The hint for losses: `--allow-pod-loss` is mentioned only if the kubelet can run with the configuration. */
export function hintOfRisks(risks: readonly Pick<PodRisk, 'path' | 'pods' | 'stopsKubelet' | 'fix'>[]): string {
  const fields = [...new Set(risks.map(({ path }) => path))].join(', ');
  const fixes = [...risks.flatMap(({ fix }) => fix ?? []), `change ${fields}`].join(', or ');
  const start = `${fixes[0]?.toUpperCase()}${fixes.slice(1)}`;
  if (risks.some(({ stopsKubelet }) => stopsKubelet === true)) return start;
  return risks.some(({ pods }) => pods.length > 0)
    ? `${start}, or move these pods to other nodes, or pass --allow-pod-loss to let them be terminated`
    : `${start}, or pass --allow-pod-loss to apply the change anyway`;
}

const NAMED = 5;

/** `maxPods 1 is less than the 3 pods of the node: default/a, default/b would be terminated`. Long lists of pods are cut. */
export function describeRisk({ why, pods }: PodRisk): string {
  if (pods.length === 0) return why;
  const more = pods.length > NAMED ? ` and ${pods.length - NAMED} more` : '';
  return `${why}: ${pods.slice(0, NAMED).join(', ')}${more} would be terminated`;
}
