import type { BootstrapCredentials } from '../core/config/bootstrap-credentials.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import type { PhaseContext } from '../engine/phase.ts';
import type { Prepared, Workflow } from '../engine/run-workflow.ts';
import { type KubeletStartInput, kubeletStart } from '../phases/kubelet-start.ts';
import { kubeletWaitBootstrap } from '../phases/kubelet-wait-bootstrap.ts';
import { type RememberNodeInput, rememberStartedNode } from '../phases/remember-node.ts';
import type { Cluster } from '../ports/cluster.ts';
import { bootstrapFiles, hasIdentity } from './bootstrap-files.ts';
import { readClusterBaseline, unlessForbidden } from './cluster-baseline.ts';
import { joinFindings } from './join-findings.ts';
import { nodeMemoryOf } from './node-memory-of.ts';
import { designObservedNode, kubeletStartInput, type NodeOptions, type ObservedNode, observeNode } from './prepare-node.ts';
import { selectPhase } from './select-phase.ts';

export interface JoinOptions extends NodeOptions {
  /** The cluster the node joins, as discovered. */
  readonly apiServer: { readonly server: string; readonly caPem: string };
  /** What the kubelet bootstraps itself with. */
  readonly credentials: BootstrapCredentials;
  readonly caCertPath: string;
  readonly controlPlane: boolean;
  readonly tlsBootstrapMs: number;
}

export interface JoinInput {
  readonly kubeletStart: KubeletStartInput;
  readonly remember: RememberNodeInput;
  readonly tlsBootstrapMs: number;
}

/** Joins a worker: reads the cluster's configuration with the credentials given, then writes and starts the kubelet. */
export const joinWorkflow: Workflow<JoinOptions, JoinInput> = {
  name: 'join',
  phases: [
    selectPhase(kubeletStart, (input) => input.kubeletStart),
    selectPhase(rememberStartedNode, (input) => input.remember),
    selectPhase(kubeletWaitBootstrap, (input) => ({ timeoutMs: input.tlsBootstrapMs })),
  ],
  prepare: prepareJoin,
};

async function prepareJoin(context: PhaseContext, options: JoinOptions): Promise<Prepared<JoinInput>> {
  const cluster = context.cluster as Cluster;
  const node = await observeNode(context, options);
  const baseline = await readClusterBaseline(cluster, options.catalogue);
  const { design, warnings, refusals } = await designObservedNode(context, options, {
    node,
    cluster: baseline.layered,
    clusterIsDeclared: false,
    controlPlaneMinor: baseline.controlPlaneMinor,
    registerWithTaints: options.controlPlane ? [] : (node.registration.taints ?? []),
    serviceSubnets: baseline.serviceSubnets,
    featureGates: baseline.featureGates,
    findings: joinFindings(node, { ...options.apiServer, caCertPath: options.caCertPath, namesake: await namesakeOf(node, cluster) }),
  });
  const start = kubeletStartInput(design, options);
  const target = {
    ...options.apiServer,
    clusterName: baseline.clusterName,
    caPath: options.caCertPath,
    token: hasIdentity(node.facts) ? null : options.credentials,
  };
  return {
    input: {
      kubeletStart: {
        ...start,
        files: [...bootstrapFiles(options.templates, target), ...start.files],
        directories: [...start.directories, { path: '/etc/kubernetes', mode: 0o755 }],
      },
      remember: { memory: nodeMemoryOf(node, options), mayChown: start.mayChown },
      tlsBootstrapMs: options.tlsBootstrapMs,
    },
    warnings: [...baseline.warnings, ...warnings],
    refusals,
    origins: design.origins,
  };
}

/** The Node of the same name; null where the credentials may not look (kubeadm lets bootstrap tokens do it). */
async function namesakeOf({ registration }: ObservedNode, cluster: Cluster): Promise<KubeObject | null> {
  return unlessForbidden(cluster.get({ apiVersion: 'v1', kind: 'Node', name: registration.name }));
}
