import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import type { NodeAgentRequest } from '../dynamic/use-cases/run-node-agent.ts';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import { KUBELET_CONF, KUBELET_CONFIG_FILE } from '../kube/well-known.ts';
import { AGENT_DIRECTORY } from '../kubelet/node-agent/agent-program.ts';
import { addAgentOptions, agentPolicy } from './agent-options.ts';
import { AGENT_IMPACT_NOTES } from './allow-options.ts';
import type { CommandOptions, On } from './command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagText } from './option-values.ts';
import type { Services } from './output/services.ts';
import { verbosityOf } from './request-parts.ts';

/** `agent`. */
export function defineAgent(agent: Command, on: On): void {
  addOptionGroup(agent, HEADINGS.node, (node) =>
    node
      .option('--kubeconfig <file>', 'kubeconfig of the kubelet; the agent uses the same credentials', KUBELET_CONF)
      .option('--node-name <name>', 'name of the Node (default: from the command line of the local kubelet)')
      .option('--local-config <file>', 'kubelet configuration to use while no ConfigMap is assigned', KUBELET_CONFIG_FILE),
  );
  addOptionGroup(agent, HEADINGS.agent, (own) =>
    own
      .option('-n, --namespace <namespace>', 'namespace of the ConfigMaps that can be assigned', AGENT_NAMESPACE)
      .option(
        '--directory <dir>',
        'directory of the agent for its state and for checkpoints (local copies of assigned ConfigMaps)',
        AGENT_DIRECTORY,
      )
      .option(
        '--require-signature <file>',
        'accept only ConfigMaps with a signature of a signer in this file, which dynamic enable --require-signature writes (default: signatures are not required)',
      ),
  );
  addAgentOptions(agent);
  addSections(on(agent, agentRequest, runAgentCommand), { notes: NOTES, examples: EXAMPLES });
}

function agentRequest(args: readonly string[], options: CommandOptions): AgentRequest {
  if (args.length > 0) throw usageError(`agent takes no arguments: ${args.join(' ')}`);
  return {
    policy: { ...agentPolicy(options), signersFile: flagText(options, 'requireSignature') ?? null },
    kubeconfig: flagText(options, 'kubeconfig') ?? '',
    nodeName: flagText(options, 'nodeName'),
    localConfig: flagText(options, 'localConfig') ?? '',
    namespace: flagText(options, 'namespace') ?? '',
    directory: flagText(options, 'directory') ?? '',
    verbosity: verbosityOf(options),
  };
}

const NOTES = `The annotation kubeletadm.dev/config-source of the Node holds the assignment, in the format of spec.configSource:
  {"configMap": {"namespace": "${AGENT_NAMESPACE}",
    "name": "node-config-g2gfckm55t", "kubeletConfigKey": "kubelet"}}
The agent reports the result in the annotation kubeletadm.dev/config-status, in the format of status.config, and in the condition KubeletConfigOk of the Node.

The kubelet unit must read the environment file of the agent after all other environment files:
  EnvironmentFile=-${AGENT_DIRECTORY}/active.env

${AGENT_IMPACT_NOTES}`;

const EXAMPLES = `  kubeletadm agent --trial 2m --allow safe
  kubeletadm agent --kubeconfig /var/lib/kubelet/kubeconfig --node-name node1`;

interface AgentRequest extends NodeAgentRequest {
  readonly verbosity: number;
}

/** `agent`: runs until it is stopped. Exit code 0 when a signal requested the stop. */
async function runAgentCommand(services: Services, request: AgentRequest): Promise<ExitCode> {
  const { runNodeAgent } = await import('../dynamic/use-cases/run-node-agent.ts');
  const reporter = services.reporter({ verbosity: request.verbosity, format: 'text' });
  await runNodeAgent(services, request, { reporter, connect: () => services.connectHost({}) });
  return 0;
}
