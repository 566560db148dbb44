import { isAppError } from '../../../base/errors.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { CheckResult } from '../../../host/run-workflow.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import type { KubeObject } from '../../../kube/object.ts';
import type { KubeletReader } from '../../../kubelet/catalogue/catalogue.ts';
import type { SetupChange } from '../../../kubelet/effective/field-changes.ts';
import { configInputOf, type KubeletSetup } from '../../../kubelet/effective/kubelet-setup.ts';
import { assignedAt, resolveNodeSource } from '../../../kubelet/effective/node-source.ts';
import { layerRunningConfig } from '../../../kubelet/effective/running-config.ts';
import type { LayeredConfig } from '../../../kubelet/layers/layers.ts';
import { describeOverridden, findOverrides, type Overrides } from '../../../kubelet/layers/overridden-fields.ts';
import { isIgnored } from '../../preflight/check.ts';
import type { NodeDesign } from '../../render/node-design.ts';
import type { NodeOptions } from './node-options.ts';
import type { ObservedNode } from './observe-node.ts';
import { observeNodeSource, type SourcePayload } from './observe-node-source.ts';

const NOTHING: CheckResult = { warnings: [], refusals: [] };

/** The preflight check, and the code of its problems and warnings. */
export const CONFIG_OVERRIDDEN = 'ConfigOverridden';
/** Warning: the ConfigMap is known, but not which fields it overrides. */
const CONFIG_OVERRIDE_UNKNOWN = 'CONFIG_OVERRIDE_UNKNOWN';

/**
 * Compares the new config.yaml of an existing node with the ConfigMap that its kubelet runs. A change of a field that
 * the ConfigMap overrides is refused, because it would have no effect; other changes pass. A field without a change
 * is a warning. Reads the Node only if the host does not run its own file.
 */
export async function checkConfigSource(
  context: PhaseContext,
  options: NodeOptions,
  {
    node,
    design,
    cluster,
    setups,
  }: {
    readonly node: ObservedNode;
    readonly design: NodeDesign;
    /** Null: the Node cannot be read. */
    readonly cluster: Cluster | null;
    readonly setups: SetupChange;
  },
): Promise<CheckResult> {
  const { host, signal } = context;
  if (options.skipPreflight || options.staged || node.facts.identity.state === 'missing') return NOTHING;
  const observed = await observeNodeSource(host, signal);
  if (observed.host.kind === 'file' || observed.host.kind === 'none') return NOTHING;
  const { before, after } = setups;
  if (before === null) return NOTHING;
  const registered = await readNode(cluster, design.nodeName);
  const source = resolveNodeSource(observed.host, registered);
  if (source?.kind === 'unknown') {
    // A process that cannot be observed is no sign of a ConfigMap, unlike a damaged checkpoint.
    return (await observed.payload(null)) === null ? NOTHING : unknownOverrides(`the kubelet uses a ConfigMap, but ${source.why}`);
  }
  if (source?.kind !== 'config-map') return NOTHING;
  const name = `ConfigMap ${source.source.namespace}/${source.source.name}`;
  const at = assignedAt(registered, source.source);
  const described = at === null ? name : `${name} (assigned at ${at.toISOString().replace(/\.\d+Z$/, 'Z')})`;
  const payload = await observed.payload(registered);
  if (payload === null) return unknownOverrides(`the kubelet uses ${described}, but the checkpoint on the host cannot be read`);
  const overrides = overridesOf({ catalogue: options.catalogue, minor: design.minor }, { before, after }, payload);
  if (overrides === null) return unknownOverrides(`the kubelet uses ${described}, but the configurations cannot be compared`);
  return reportOverrides(overrides, {
    host: host.name,
    nodeName: design.nodeName,
    name,
    described,
    refuses: !isIgnored(CONFIG_OVERRIDDEN, [options.run, node.registration]),
  });
}

/** Null: no cluster, or its credentials may not read the Node. */
async function readNode(cluster: Cluster | null, name: string): Promise<KubeObject | null> {
  try {
    return (await cluster?.get({ apiVersion: 'v1', kind: 'Node', name })) ?? null;
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

/** Null: a kubelet does not start with one of the configurations. */
function overridesOf(
  reader: KubeletReader,
  { before, after }: { readonly before: KubeletSetup; readonly after: KubeletSetup },
  payload: SourcePayload,
): Overrides | null {
  const effective = (setup: KubeletSetup): LayeredConfig => layerRunningConfig(configInputOf(setup, reader)).layered;
  const assigned = payload.by === 'agent' ? { configFile: payload } : { dynamicConfig: payload };
  try {
    return findOverrides({
      // The same flags, so that a flag is no change of the file.
      before: effective({ ...before, flags: after.flags }),
      after: effective(after),
      running: effective({ ...after, ...assigned }),
      sets: payload.sets,
    });
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

function reportOverrides(
  { fields, unknown }: Overrides,
  report: {
    readonly host: string;
    readonly nodeName: string;
    /** `ConfigMap kube-system/node-config`. */
    readonly name: string;
    /** The same with the time of the assignment. */
    readonly described: string;
    readonly refuses: boolean;
  },
): CheckResult {
  const { host, nodeName, name, described, refuses } = report;
  const refused = refuses ? fields.filter(({ isChanged }) => isChanged) : [];
  const warned = fields.filter((field) => !refused.includes(field));
  const reset = `kubeletadm dynamic reset ${nodeName}`;
  return {
    refusals:
      refused.length === 0
        ? []
        : [
            {
              host,
              code: CONFIG_OVERRIDDEN,
              message: `preflight: the change of config.yaml would have no effect: Node ${nodeName} uses ${described}, which overrides ${refused.map(describeOverridden).join(', ')}`,
              hint: `Change the ConfigMap, or remove the assignment with ${reset}. To continue anyway, use --ignore-preflight-errors=${CONFIG_OVERRIDDEN}`,
            },
          ],
    warnings: [
      ...warned.map((field) => ({
        code: CONFIG_OVERRIDDEN,
        field: field.path,
        message: `${name} overrides ${describeOverridden(field)}. To change the field, change the ConfigMap, or run ${reset}`,
      })),
      ...unknown.map((path) => ({
        code: CONFIG_OVERRIDE_UNKNOWN,
        message: `${name} may override ${path}: the agent has not recorded which fields the ConfigMap sets`,
      })),
    ],
  };
}

function unknownOverrides(why: string): CheckResult {
  return {
    warnings: [{ code: CONFIG_OVERRIDE_UNKNOWN, message: `it is unknown which fields of config.yaml a ConfigMap overrides: ${why}` }],
    refusals: [],
  };
}
