import type { PhaseContext } from '../../../host/phase.ts';
import { effectiveConfiguration } from '../../../kubelet/defaults/effective-configuration.ts';
import { effectiveOf, type KubeletReading } from '../../../kubelet/effective/field-changes.ts';
import type { KubeletSetup } from '../../../kubelet/effective/kubelet-setup.ts';
import { describeRisk } from '../../../kubelet/workload/pod-risks.ts';
import { findRisksOnHost } from '../../../kubelet/workload/risks-on-host.ts';
import type { Finding } from '../../preflight/check.ts';
import type { NodeDesign } from '../../render/node-design.ts';
import type { NodeOptions } from './node-options.ts';
import type { ObservedNode } from './observe-node.ts';

/** Fields of a new node with checks of their own (CRI), or whose files this run writes. */
const CHECKED_ELSEWHERE = ['containerRuntimeEndpoint', 'imageServiceEndpoint', 'staticPodPath'] as const;

interface NewNode {
  readonly design: NodeDesign;
  readonly reading: KubeletReading;
  /** What its kubelet will read. */
  readonly setup: KubeletSetup;
  /** Paths that the run writes before the kubelet starts. */
  readonly written: readonly string[];
}

/**
 * Finds what a host without a node lacks for its configuration: files, directories and programs that fields and flags
 * name, ports, addresses, CPUs, space. A running node has the same checks, which also consider its pods. Only fields
 * that differ from the defaults of the kubelet are checked.
 */
export async function newNodeFindings(
  { host, signal }: PhaseContext,
  { catalogue, staged }: NodeOptions,
  { facts: { identity } }: ObservedNode,
  { design, reading, setup, written }: NewNode,
): Promise<readonly Finding[]> {
  if (staged || identity.state !== 'missing') return [];
  const { minor, nodeName } = design;
  const { flags } = setup;
  const after = effectiveOf(setup, reading);
  if (after === null) return [];
  const before = {
    ...effectiveConfiguration({}, { catalogue, minor }),
    ...Object.fromEntries(CHECKED_ELSEWHERE.map((field) => [field, after[field] ?? null])),
  };
  const risks = await findRisksOnHost({
    host,
    cluster: null,
    nodeName,
    minor,
    catalogue,
    before,
    after,
    flags,
    newFlags: flags,
    given: {},
    hidden: written,
    removesManagerStates: true,
    signal,
  });
  return risks.map((risk): Finding => {
    const severity = risk.severity === 'loss' ? 'error' : 'warning';
    const hint =
      risk.fix === undefined ? `Change ${risk.path}` : `${risk.fix[0]?.toUpperCase()}${risk.fix.slice(1)}, or change ${risk.path}`;
    return { id: 'ConfigOnHost', severity, message: describeRisk(risk), hint };
  });
}
