import type { Problem } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { validatePayload } from '../../dynamic/agent/validate-payload.ts';
import { revertNotSigned } from '../../dynamic/status/dynamic-problems.ts';
import type { NodeConfig } from '../../dynamic/status/node-config.ts';
import { unreadableProblems, unsignedProblems } from '../../dynamic/use-cases/assign.ts';
import { type CheckedPayload, type CheckedRisks, checkPodRisks } from '../../dynamic/use-cases/check-pod-risks.ts';
import { findPayload } from '../../dynamic/workflows/assign-config.ts';
import { exceeds, highestImpact, type Impact, needsDrain } from '../../host/plan/impact.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { mayDrain } from '../../kube/has-permission.ts';
import { DEFAULT_MINOR } from '../../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { type ConfigSource, describeSource, sameSource } from '../../kubelet/layers/config-source.ts';
import { drainForbidden } from '../../maintenance/drain/drain-problems.ts';
import type { RolloutSpec } from '../api/schema.ts';
import type { NodeCheck } from '../reconcile/observed.ts';

/**
 * Validates a configuration for nodes, by the checks of `dynamic assign`: for the version of each kubelet, the namespace and the
 * signatures that its agent accepts, pods that would be lost, and the impact.
 * @throws AppError DYNAMIC_NO_PAYLOAD, and the errors of the API server
 */
export async function checkNodes(
  cluster: Cluster,
  spec: RolloutSpec,
  source: ConfigSource,
  nodes: readonly NodeConfig[],
): Promise<ReadonlyMap<string, NodeCheck>> {
  return (await checkPayload(cluster, spec, { source, ...(await findPayload(cluster, source)) }, nodes)).checks;
}

/** What a rollout permits. */
type CheckedSpec = Pick<RolloutSpec, 'onFailure'> & { readonly strategy: Pick<RolloutSpec['strategy'], 'allow'> };

/**
 * `checkNodes` for a content that need not exist as a ConfigMap.
 * @returns also the fields that differ from the running configuration, as of `checkPodRisks`: without nodes that run the source
 */
export async function checkPayload(
  cluster: Cluster,
  spec: CheckedSpec,
  { source, text, data }: { readonly source: ConfigSource; readonly text: string; readonly data: CheckedPayload['data'] },
  nodes: readonly NodeConfig[],
): Promise<{ readonly checks: ReadonlyMap<string, NodeCheck>; readonly fields: CheckedRisks['fields'] }> {
  const invalid = await invalidVersions(text, source, nodes);
  // Nodes that run the configuration have accepted it.
  const changed = nodes.filter(({ status }) => !sameSource(status?.active ?? null, source));
  const { refusals, losses, fields } = await checkPodRisks(cluster, { nodes: changed, source, data, drains: true });
  const impactOf = (name: string): Impact | null => highestImpact((fields.get(name) ?? []).map(({ impact }) => impact));
  const drained = nodes.flatMap(({ name }) => (needsDrain(impactOf(name)) ? [name] : []));
  const problems = [
    ...unreadableProblems(nodes, source),
    ...unsignedProblems(nodes, { source, data }),
    ...refusals,
    ...losses,
    ...((await mayDrainAll(cluster, drained)) ? [] : drained.map(drainForbidden)),
    ...nodes.flatMap((node) => irreversible(node, spec)),
  ];
  const checks = new Map(
    nodes.map((node): [string, NodeCheck] => {
      const impact = impactOf(node.name);
      const found = [...(invalid.get(versionKey(node)) ?? []), ...problems.filter(({ host }) => host === node.name)];
      const tooHigh = exceeds(impact, spec.strategy.allow) ? [`the impact is ${impact}, above strategy.allow ${spec.strategy.allow}`] : [];
      const why = [...found.map(({ message, path }) => (path === undefined ? message : `${path}: ${message}`)), ...tooHigh];
      return [node.name, { refusal: why.length === 0 ? null : why.join('; '), impact }];
    }),
  );
  return { checks, fields };
}

/** The rights are the same for all nodes. */
async function mayDrainAll(cluster: Cluster, [name]: readonly string[]): Promise<boolean> {
  return name === undefined || mayDrain(cluster, name);
}

function irreversible({ name, report, source }: NodeConfig, { onFailure }: CheckedSpec): readonly Problem[] {
  const isRefused = onFailure === 'Revert' && report?.requiresSignature === true && source.source !== null;
  return isRefused ? [{ ...revertNotSigned([name]), host: name }] : [];
}

/** Nodes with the same result of the validation. */
function versionKey({ minor, backend }: NodeConfig): string {
  return `${minor} ${backend}`;
}

async function invalidVersions(
  text: string,
  source: ConfigSource,
  nodes: readonly NodeConfig[],
): Promise<ReadonlyMap<string, readonly Problem[]>> {
  const catalogue = await loadCatalogue();
  const versions = [...new Map(nodes.map((node) => [versionKey(node), node])).values()];
  const found = await inParallel(versions, 1, async (node) => {
    const options = { minors: [node.minor ?? DEFAULT_MINOR], native: node.backend === 'native', catalogue };
    const problems = await validatePayload(text, describeSource(source), options);
    return [versionKey(node), problems.filter(({ severity }) => severity !== 'warning')] as const;
  });
  return new Map(found);
}
