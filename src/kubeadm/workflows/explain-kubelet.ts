import type { Host } from '../../host/host.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { type Catalogue, formatMinor } from '../../kubelet/catalogue.ts';
import { defaultKubeletConfiguration } from '../../kubelet/defaults/default-kubelet-configuration.ts';
import { effectiveConfiguration } from '../../kubelet/defaults/effective-configuration.ts';
import {
  compareWithConfigz,
  compareWithInstanceConfig,
  type Disagreement,
  explainConfigz,
  explainLayers,
  findDrift,
  type NodeExplanation,
} from '../../kubelet/effective/node-explanation.ts';
import { type ObservedKubelet, observeKubelet } from './observe-kubelet.ts';
import { readNodeConfig } from './read-node-config.ts';

export interface ExplainHostOptions {
  readonly catalogue: Catalogue;
  /** Serves /configz of the kubelet; null: no cluster is used. */
  readonly cluster: Cluster | null;
  readonly signal?: AbortSignal;
}

/** Explains the kubelet configuration of a host from disk and process, and lists the differences between them and /configz. */
export async function explainHostKubelet(host: Host, { catalogue, cluster, signal }: ExplainHostOptions): Promise<NodeExplanation> {
  const observed = await observeKubelet(host, catalogue, signal);
  const { minor, nodeName } = observed;
  const configz = cluster === null || nodeName === null ? null : await readNodeConfig(cluster, nodeName, catalogue);
  return {
    node: host.name,
    kubernetesVersion: observed.version,
    process: observed.kubelet === null ? null : { pid: observed.kubelet.pid, startedAt: startedAt(observed) },
    fields: explainLayers(observed.running.layered),
    flags: observed.flags.map(({ name, value, source }) => ({ name, value, source, field: catalogue.flag(name, minor)?.field ?? null })),
    disagreements: [
      ...driftOf(observed),
      ...(observed.instanceConfig === null ? [] : compareWithInstanceConfig(observed.instanceConfig, observed.running.layered)),
      ...(configz === null ? [] : compareWithConfigz(configz.config, observed.running.layered, { minor, catalogue })),
      ...observed.running.problems.map(
        ({ path, message }): Disagreement => ({
          code: 'PASSED_OVER',
          message: path === undefined ? message : `${path}: ${message}`,
          ...(path === undefined ? {} : { field: path }),
        }),
      ),
    ],
  };
}

function driftOf({ kubelet, unit, files, flags, diskFlags, diskVersion }: ObservedKubelet): readonly Disagreement[] {
  if (kubelet === null) return [];
  return findDrift({
    flags,
    diskFlags,
    files: files.map(({ path, file }) => ({ path, modifiedAt: file?.modifiedAt ?? null })),
    unit,
    runningVersion: kubelet.version,
    diskVersion,
  });
}

function startedAt({ unit }: ObservedKubelet): string | null {
  const seconds = unit?.startedAt ?? null;
  return seconds === null ? null : new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
}

/** Explains the kubelet configuration of a node from /configz alone, without the file or flag that set a value. */
export async function explainNodeKubelet(cluster: Cluster, name: string, catalogue: Catalogue): Promise<NodeExplanation> {
  const { minor, version, config } = await readNodeConfig(cluster, name, catalogue);
  const defaults = effectiveConfiguration(defaultKubeletConfiguration(minor, catalogue), { minor, catalogue });
  return {
    node: `node/${name}`,
    kubernetesVersion: version || formatMinor(minor),
    process: null,
    fields: explainConfigz(config, defaults, minor),
    flags: [],
    disagreements: [],
  };
}
