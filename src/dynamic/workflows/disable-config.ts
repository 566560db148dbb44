import { isJsonObject } from '../../base/json.ts';
import { printable } from '../../base/text/printable.ts';
import type { Templates } from '../../codec/render-template.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import type { ClusterChange, Warning } from '../../host/plan/change.ts';
import type { Prepared, Workflow } from '../../host/run-workflow.ts';
import { AGENT_NAMESPACE, NAMESPACE_ANNOTATION } from '../../kube/agent-namespace.ts';
import type { KubeObject } from '../../kube/object.ts';
import { type AgentRemoveInput, agentRemove } from '../../kubeadm/phases/agent-remove.ts';
import { agentRightsRemoval } from '../../kubeadm/phases/agent-rights.ts';
import { type ChangeUnitsInput, changeUnits } from '../../kubeadm/phases/change-units.ts';
import { LAST_DYNAMIC_MINOR } from '../../kubelet/effective/dynamic-store.ts';
import { healthzOf } from '../../kubelet/effective/healthz-url.ts';
import { ASSIGNED_BY_ANNOTATION } from '../../kubelet/effective/node-source.ts';
import {
  ALLOW_POD_LOSS_ANNOTATION,
  CONFIG_REPORT_ANNOTATION,
  CONFIG_SOURCE_ANNOTATION,
  CONFIG_STATUS_ANNOTATION,
  RETRY_ANNOTATION,
} from '../../kubelet/layers/config-source.ts';
import { AGENT_DIRECTORY, PROGRAM_DIRECTORY } from '../../kubelet/node-agent/agent-program.ts';
import { AGENT_SERVICE, AGENT_UNIT, AGENT_WANTS_LINK, POINTER_DROP_IN, readInstalledAgent } from '../../kubelet/node-agent/agent-units.ts';
import { pointerFile } from '../../kubelet/node-agent/layout.ts';
import { foreignDynamicConfigDir, NATIVE_DROP_IN } from '../../kubelet/node-agent/native-flags.ts';
import { CONFIG_CONDITION } from '../agent/status.ts';
import { CONFIG_HISTORY_ANNOTATION } from '../status/assignment-history.ts';
import { type DynamicHost, type DynamicHostOptions, observeDynamicHost, planPointerDropIn } from './observe-dynamic-host.ts';

const ANNOTATIONS = [
  CONFIG_SOURCE_ANNOTATION,
  ALLOW_POD_LOSS_ANNOTATION,
  ASSIGNED_BY_ANNOTATION,
  CONFIG_HISTORY_ANNOTATION,
  CONFIG_STATUS_ANNOTATION,
  CONFIG_REPORT_ANNOTATION,
  RETRY_ANNOTATION,
  NAMESPACE_ANNOTATION,
];

/**
 * Removes the assignment and its status from a Node on which no agent or kubelet uses them any more. The status of a kubelet
 * up to 1.23 is kept if the kubelet continues to write it.
 */
const removeAssignment = definePhase<{ readonly nodeName: string; readonly keepsReport: boolean } | null, KubeObject | null>({
  name: 'forget-assignment',
  short: 'Remove the assignment and its status from the Node',
  observe: async ({ cluster }, input) =>
    input === null || cluster === null ? null : cluster.get({ apiVersion: 'v1', kind: 'Node', name: input.nodeName }),
  plan: (node, input) => {
    if (input === null) return { changes: [] };
    const changes = node === null ? [] : changesOf(node, input.keepsReport);
    return changes.length === 0 ? { changes, noop: 'the Node has no assignment' } : { changes };
  },
});

function changesOf(node: KubeObject, keepsReport: boolean): readonly ClusterChange[] {
  const ref = { apiVersion: 'v1', kind: 'Node', name: node.metadata.name };
  const reason = keepsReport ? 'the kubelet returns to its local configuration' : 'dynamic configuration is disabled on the node';
  const annotations = ANNOTATIONS.filter((name) => node.metadata.annotations?.[name] !== undefined);
  const { spec, status } = node;
  const isAssigned = isJsonObject(spec) && isJsonObject(spec.configSource);
  const main = {
    ...(annotations.length === 0 ? {} : { metadata: { annotations: Object.fromEntries(annotations.map((name) => [name, null])) } }),
    ...(isAssigned ? { spec: { configSource: null } } : {}),
  };
  const conditions = isJsonObject(status) && Array.isArray(status.conditions) ? status.conditions.filter(isJsonObject) : [];
  const isAnnounced = conditions.some(({ type }) => type === CONFIG_CONDITION);
  const isReported = !keepsReport && isJsonObject(status) && isJsonObject(status.config);
  const reported = {
    ...(isAnnounced ? { conditions: [{ $patch: 'delete', type: CONFIG_CONDITION }] } : {}),
    ...(isReported ? { config: null } : {}),
  };
  return [
    ...(Object.keys(main).length === 0 ? [] : [{ kind: 'patch-object', ref, patch: main, reason } as const]),
    ...(Object.keys(reported).length === 0
      ? []
      : [{ kind: 'patch-object', ref, patch: { status: reported }, subresource: 'status', reason: `status: ${reason}` } as const]),
  ];
}

interface DisableOptions extends DynamicHostOptions {
  /** The namespace of node configurations; null: that of the installed agent. */
  readonly namespace: string | null;
  /** Null: that of the installed agent. */
  readonly programDirectory: string | null;
}

interface DisableInput {
  readonly units: ChangeUnitsInput;
  readonly remove: AgentRemoveInput;
  readonly nodeName: string | null;
  readonly namespace: string;
  /** Another drop-in enables the dynamic configuration of the kubelet, which continues to report. */
  readonly keepsReport: boolean;
}

const stopAgent = changeUnits('agent-stop', 'Stop the agent and let the kubelet unit use only the local configuration');

/**
 * Reverts `dynamic enable`: the kubelet's units become byte-for-byte identical to before, and the kubelet is
 * restarted if it does not run its local configuration. The rights of its agent are deleted. The agent's
 * unit, which records the installation, is removed last, so that an interrupted run can be repeated.
 */
export const disableWorkflow: Workflow<DisableOptions, DisableInput> = {
  name: 'dynamic disable',
  phases: [
    stopAgent.select((input) => input.units),
    removeAssignment.select(({ nodeName, keepsReport }) => (nodeName === null ? null : { nodeName, keepsReport })),
    agentRightsRemoval.select(({ nodeName, namespace }) => (nodeName === null ? null : { nodeName, namespace, isOptional: false })),
    agentRemove.select((input) => input.remove),
  ],
  prepare: prepareDisable,
};

async function prepareDisable(context: PhaseContext, options: DisableOptions): Promise<Prepared<DisableInput>> {
  const unit = (await observe(context.host, fileFacts([AGENT_UNIT]), context.signal)).get(AGENT_UNIT)?.content ?? null;
  const installed = readInstalledAgent(unit);
  const found = await observeDynamicHost(context, options, { backend: null, needsNode: false });
  const local = await localText(context, options.templates, found);
  const runsOther = found.payload !== null || (found.runsWith('dynamic-config-dir') && hasDropIn(found));
  const foreign = found.minor > LAST_DYNAMIC_MINOR || found.unitTexts === null ? null : foreignDynamicConfigDir(found.unitTexts);
  return {
    input: {
      units: {
        files: [],
        removed: [AGENT_WANTS_LINK, POINTER_DROP_IN, pointerFile(AGENT_DIRECTORY), NATIVE_DROP_IN],
        running: null,
        stopped: AGENT_SERVICE,
        readyUrl: null,
        kubelet: runsOther ? { when: 'always', reason: 'the kubelet returns to its local configuration' } : null,
        health: local === null ? found.health : { ...found.health, url: await healthzOf(context.host, local.path, context.signal) },
        verification: found.verification === null || local === null ? found.verification : { ...found.verification, after: local.text },
      },
      remove: {
        directory: AGENT_DIRECTORY,
        programDirectory: options.programDirectory ?? installed.programDirectory ?? PROGRAM_DIRECTORY,
        keepsDropInDirectory: installed.keepsDropInDirectory,
      },
      nodeName: found.nodeName,
      namespace: options.namespace ?? installed.namespace ?? AGENT_NAMESPACE,
      keepsReport: foreign !== null,
    },
    warnings: [
      ...(foreign === null ? [] : [staysEnabled(foreign.source)]),
      ...(installed.nodeName === null || found.nodeName === null || installed.nodeName === found.nodeName
        ? []
        : [otherNode(installed.nodeName, found.nodeName)]),
    ],
    refusals: found.refusals,
    node: found.node,
    isDown: found.isDown,
  };
}

function staysEnabled(source: string): Warning {
  const message = `${source} still sets --dynamic-config-dir, so the kubelet continues to use the ConfigMap that is assigned to its Node. Remove the flag from that file: dynamic disable removes only the file of dynamic enable`;
  return { code: 'DYNAMIC_STAYS_ENABLED', message };
}

/** The agent's unit is a claim of the host, for which nothing of another Node is deleted. */
function otherNode(installed: string, nodeName: string): Warning {
  const message = `the agent was installed for Node ${printable(installed)}, but this host is now Node ${nodeName}. The RBAC rules and the assignment of Node ${printable(installed)} are not removed`;
  return { code: 'AGENT_OF_ANOTHER_NODE', message };
}

function hasDropIn({ unitTexts }: DynamicHost): boolean {
  return unitTexts?.unitFiles.some(({ path }) => path === NATIVE_DROP_IN) === true;
}

/** The local configuration of the kubelet; null if unknown. */
async function localText(
  { host, signal }: PhaseContext,
  templates: Templates,
  { unitTexts }: DynamicHost,
): Promise<{ readonly path: string; readonly text: string } | null> {
  const dropIn = unitTexts === null ? null : planPointerDropIn(templates, unitTexts, AGENT_DIRECTORY);
  if (dropIn?.kind !== 'drop-in') return null;
  const text = (await observe(host, fileFacts([dropIn.localConfig]), signal)).get(dropIn.localConfig)?.content;
  return text === undefined ? null : { path: dropIn.localConfig, text };
}
