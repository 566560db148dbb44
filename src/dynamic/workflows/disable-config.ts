import { printable } from '../../base/text/printable.ts';
import type { Templates } from '../../codec/render-template.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { Prepared, Workflow } from '../../host/run-workflow.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import { type AgentRemoveInput, agentRemove } from '../../kubeadm/phases/agent-remove.ts';
import { agentRightsRemoval } from '../../kubeadm/phases/agent-rights.ts';
import { type ChangeUnitsInput, changeUnits } from '../../kubeadm/phases/change-units.ts';
import type { NodeTrust } from '../../kubeadm/workflows/node/identify-node.ts';
import type { Catalogue } from '../../kubelet/catalogue/catalogue.ts';
import { LAST_DYNAMIC_MINOR } from '../../kubelet/effective/dynamic-store.ts';
import { healthzOf } from '../../kubelet/effective/healthz-url.ts';
import { AGENT_DIRECTORY, PROGRAM_DIRECTORY } from '../../kubelet/node-agent/agent-program.ts';
import { AGENT_SERVICE, AGENT_UNIT, AGENT_WANTS_LINK, POINTER_DROP_IN } from '../../kubelet/node-agent/agent-units.ts';
import { readInstalledAgent } from '../../kubelet/node-agent/installed-agent.ts';
import { pointerFile } from '../../kubelet/node-agent/layout.ts';
import { foreignDynamicConfigDir, NATIVE_DROP_IN } from '../../kubelet/node-agent/native-flags.ts';
import { planPointerDropIn } from '../agent/plan-pointer-drop-in.ts';
import { removeAssignment } from '../phases/remove-assignment.ts';
import { type DynamicHost, observeDynamicHost } from './observe-dynamic-host.ts';

interface DisableOptions {
  readonly templates: Templates;
  readonly catalogue: Catalogue;
  /** Named by the operator; null: the host must prove its Node. */
  readonly nodeName: string | null;
  readonly trust: NodeTrust;
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
  const { templates, catalogue, nodeName, trust } = options;
  const found = await observeDynamicHost(context, { catalogue, nodeName, trust, backend: null, needsNode: false });
  const local = await localText(context, templates, found);
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
